//! ccb's own loop over HTTPS, on loopback: the certificates it accepts, its errors about others,
//! and the way through a proxy.

use std::ffi::OsString;

use harness::model::{Outcome, Step, prompt};
use harness::native_world::{KEY, NativeWorld, WIRES, error, results, stalls};
use harness::tls::{Proxy, TlsFront, authority};
use harness::{Talk, runs};
use serde_json::json;
use swarm::process::Ending;
use swarm::provider::Wire;
use swarm::runtime::{Event, Order, TurnStatus};

use crate::CCB;

/// A model behind TLS.
struct Scene {
    world: NativeWorld,
    front: TlsFront,
}

impl Scene {
    fn new(wire: Wire) -> Self {
        let world = NativeWorld::new(CCB, wire);
        let front = TlsFront::start(world.server.port());
        Self { world, front }
    }

    /// Starts an agent with these variables whose model follows these steps.
    fn follow(&self, steps: &[Step], env: &[(&str, OsString)]) -> Talk {
        let mut launch = self.world.launch(&prompt("Go.", steps));
        let provider = launch.provider.as_mut().unwrap();
        provider.base_url = self.front.url();
        let env = env.iter().cloned();
        launch
            .env
            .extend(env.map(|(name, value)| (name.into(), value)));
        self.world.start(launch)
    }
}

/// The variable that names the authority's file.
fn trusting() -> [(&'static str, OsString); 1] {
    [("SSL_CERT_FILE", authority().into())]
}

#[test]
fn a_model_behind_tls_is_asked_in_every_form() {
    for wire in WIRES {
        let scene = Scene::new(wire);
        let steps = [
            Step::tool("NoSuchTool", json!({"n": 1})),
            // Cut in the middle of a call, which must not be taken for a whole one.
            Step::tool("NoSuchTool", json!({"n": 2}))
                .drop_stream()
                .times(1),
            Step::text("word by word, safely"),
        ];
        let mut talk = scene.follow(&steps, &trusting());
        let turn = talk.turn();
        assert_eq!(turn.text, "word by word, safely", "{wire}: {turn:?}");
        assert_eq!(results(&talk).len(), 2, "{wire}");
        assert_eq!(scene.world.requests().len(), 4, "{wire}");
        talk.finish();
    }
}

#[test]
fn an_interrupt_closes_the_connection_below_tls() {
    let scene = Scene::new(Wire::Anthropic);
    let mut talk = scene.follow(&[Step::text("x").hang()], &trusting());
    let server = &scene.world.server;
    server.wait_for(runs::LONG, "a request", |all| !all.is_empty());
    talk.order(Order::Interrupt);
    assert_eq!(talk.turn().status, TurnStatus::Interrupted);
    assert_eq!(scene.world.requests()[0].outcome, Some(Outcome::AskerGone));
    talk.finish();
}

#[test]
fn a_file_for_node_adds_to_the_authorities_of_the_system() {
    let scene = Scene::new(Wire::Anthropic);
    let extra = [("NODE_EXTRA_CA_CERTS", OsString::from(authority()))];
    let mut talk = scene.follow(&[Step::text("known")], &extra);
    assert_eq!(talk.turn().text, "known");
    talk.finish();
    // A missing one is reported, and changes nothing else.
    let gone = [
        ("NODE_EXTRA_CA_CERTS", OsString::from("/no/such/file.pem")),
        ("SSL_CERT_FILE", authority().into()),
    ];
    let mut talk = scene.follow(&[Step::text("known")], &gone);
    assert_eq!(talk.turn().text, "known");
    talk.finish();
    let printed = talk.seen.iter().filter_map(|event| match event {
        Event::Output { bytes, .. } => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    });
    let printed: String = printed.collect();
    assert!(
        printed.contains("NODE_EXTRA_CA_CERTS is ignored: /no/such/file.pem"),
        "{printed}"
    );
}

#[test]
fn a_certificate_that_is_not_trusted_ends_the_turn_at_once() {
    for wire in WIRES {
        let mut scene = Scene::new(wire);
        let mut talk = scene.follow(&[Step::text("never")], &[]);
        let turn = talk.turn();
        assert_eq!(turn.status, TurnStatus::Failed, "{wire}: {turn:?}");
        let why = error(&turn);
        for words in [
            &scene.front.url(),
            "certificate is not trusted",
            "SSL_CERT_FILE",
            "NODE_EXTRA_CA_CERTS",
            "ccb doctor --probe",
        ] {
            assert!(why.contains(words), "{words}: {why}");
        }
        assert_eq!(stalls(&talk), [""; 0], "it is not tried again");
        talk.finish();
        // One for another host, with a valid signature.
        scene.front = TlsFront::for_another_name(scene.world.server.port());
        let mut talk = scene.follow(&[Step::text("never")], &trusting());
        let turn = talk.turn();
        assert_eq!(turn.status, TurnStatus::Failed, "{wire}: {turn:?}");
        assert!(error(&turn).contains("for another name"), "{turn:?}");
        assert_eq!(scene.world.requests().len(), 0, "no server got the key");
        talk.finish();
    }
}

#[test]
fn without_any_authority_the_file_is_named() {
    let scene = Scene::new(Wire::Anthropic);
    let env = [("SSL_CERT_FILE", OsString::from("/no/such/file.pem"))];
    let mut talk = scene.follow(&[Step::text("never")], &env);
    let turn = talk.turn();
    assert_eq!(turn.status, TurnStatus::Failed, "{turn:?}");
    let why = error(&turn);
    assert!(
        why.contains("SSL_CERT_FILE") && why.contains("/no/such/file.pem"),
        "{why}"
    );
    talk.finish();
}

#[test]
fn a_proxy_sees_where_to_and_nothing_else() {
    for wire in WIRES {
        let scene = Scene::new(wire);
        let proxy = Proxy::start();
        let mut env = trusting().to_vec();
        env.push(("HTTPS_PROXY", proxy.url().into()));
        let steps = [
            Step::tool("NoSuchTool", json!({"n": 1})),
            Step::text("through it"),
        ];
        let mut talk = scene.follow(&steps, &env);
        assert_eq!(talk.turn().text, "through it", "{wire}");
        talk.finish();
        let heads = proxy.heads();
        let connect = format!("CONNECT {} HTTP/1.1\r\n", scene.front.place());
        assert!(
            heads.iter().all(|head| head.starts_with(&connect)),
            "{heads:?}"
        );
        assert!(
            !heads.is_empty() && heads[0].contains("Basic "),
            "{heads:?}"
        );
        assert!(!heads.concat().contains(KEY), "{heads:?}");
        // Addresses nearby are reached without it.
        env.push(("NO_PROXY", "127.0.0.1".into()));
        let mut talk = scene.follow(&[Step::text("past it")], &env);
        assert_eq!(talk.turn().text, "past it", "{wire}");
        assert_eq!(proxy.heads().len(), heads.len());
        talk.finish();
    }
}

/// An agent behind a proxy with this answer.
fn behind(proxy: &Proxy, scene: &Scene) -> Talk {
    let mut env = trusting().to_vec();
    env.push(("https_proxy", proxy.url().into()));
    scene.follow(&[Step::text("never")], &env)
}

#[test]
fn a_proxy_that_wants_a_password_is_asked_once() {
    let scene = Scene::new(Wire::Anthropic);
    let proxy = Proxy::answering("407 Who are you");
    let mut talk = behind(&proxy, &scene);
    let turn = talk.turn();
    assert_eq!(turn.status, TurnStatus::Failed, "{turn:?}");
    let why = error(&turn);
    for words in ["HTTPS_PROXY", "wants a name and a password", "NO_PROXY"] {
        assert!(why.contains(words), "{why}");
    }
    assert!(!why.contains("hidden-word"), "{why}");
    assert_eq!(talk.finish(), Ending::Exited(0));
    assert_eq!(proxy.heads().len(), 1, "it is not asked again");
}

#[test]
fn a_proxy_that_does_not_connect_is_named_without_its_password() {
    let scene = Scene::new(Wire::Anthropic);
    let proxy = Proxy::answering("502 No Server");
    let mut talk = behind(&proxy, &scene);
    let why = talk.until("a wait", |event| match event {
        Event::Stalled { why } => Some(why),
        _ => None,
    });
    assert!(
        why.contains("through the proxy in HTTPS_PROXY") && why.contains("refused to connect"),
        "{why}"
    );
    assert!(
        why.contains("retrying in") && !why.contains("hidden-word"),
        "{why}"
    );
    talk.order(Order::Stop);
    assert_eq!(talk.end(), Ending::Exited(0));
}
