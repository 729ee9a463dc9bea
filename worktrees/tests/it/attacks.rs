//! Attacks that an agent may leave in its private `.git`, as shell scripts; the tests of the
//! library and those of whole runs go through the same list.
//!
//! Each script runs in the worktree, with `work` already committed. It finds `$COMMON` (the
//! repository's own `.git`), `$VICTIM` (a file of the user's that must not change) and `$CODE` (a
//! command whose run is noticed). `c WORDS` commits, `t` writes a tree from stdin as `git mktree`
//! does.

/// The end of the work of a run with this attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Its commits are taken over, and the rest of the files committed.
    Whole,
    /// Its files are there, its own commits are not.
    Files,
    /// Nothing is committed, for a reason that contains these words.
    Not(&'static str),
}

/// One attack.
#[derive(Debug)]
pub struct Attack {
    /// The attack in words.
    pub name: &'static str,
    /// The agent's script.
    pub script: &'static str,
    /// The end of its work.
    pub ends: Ends,
    /// Commands of a careless user in the worktree afterwards that make `$CODE` run or the victim
    /// change: the proof that the attack is one.
    pub control: Option<&'static str>,
    /// True if it takes seconds, or much memory.
    pub heavy: bool,
}

const fn attack(name: &'static str, ends: Ends, script: &'static str) -> Attack {
    Attack {
        name,
        script,
        ends,
        control: None,
        heavy: false,
    }
}

impl Attack {
    const fn with_control(mut self, control: &'static str) -> Self {
        self.control = Some(control);
        self
    }

    const fn heavy(mut self) -> Self {
        self.heavy = true;
        self
    }
}

use Ends::{Files, Not, Whole};

/// The beginning of every script.
pub const PRELUDE: &str = r#"set -e
g() { git -c user.name=a -c user.email=a@a -c commit.gpgSign=false "$@"; }
c() { g commit -q --allow-empty -m "$*"; }
on_tree() { g commit-tree -p HEAD -m odd "$1"; }
raw_tree() { git hash-object -t tree -w --literally --stdin; }
bytes() { printf "$(printf %s "$1" | sed 's/../\\x&/g')"; }
"#;

/// All of them.
pub const ATTACKS: &[Attack] = &[
    attack("honest work", Whole, "echo more > more; g add more; c more; echo loose > loose"),
    attack("the log of HEAD is a link", Whole, "rm .git/logs/HEAD; ln -s $VICTIM .git/logs/HEAD")
        .with_control("g commit -q --allow-empty -m '$(touch x)'"),
    attack(
        "the log of the branch is a link",
        Whole,
        "rm .git/logs/refs/heads/worktree/x; ln -s $VICTIM .git/logs/refs/heads/worktree/x",
    )
    .with_control("g commit -q --allow-empty -m words"),
    attack("HEAD is a link to a file of the user's", Files, "rm .git/HEAD; ln -s $VICTIM .git/HEAD"),
    attack("the index is a link", Whole, "rm .git/index; ln -s $VICTIM .git/index"),
    attack("the configuration is a link", Whole, "rm .git/config; ln -s $VICTIM .git/config"),
    attack("refs are a link to the repository's", Files, "rm -r .git/refs .git/packed-refs; ln -s $COMMON/refs .git/refs"),
    attack("objects are a link to the repository's", Files, "rm -r .git/objects; ln -s $COMMON/objects .git/objects"),
    attack(
        "HEAD is on a branch of the user's",
        Whole,
        "g checkout -q -B feature/x; echo on-feature > on-feature; g add on-feature; c on-feature",
    ),
    attack("HEAD names a branch that is not there", Files, "echo ref: refs/heads/none > .git/HEAD"),
    attack("HEAD names a file outside", Files, "echo ref: refs/heads/../../../../../../.git/HEAD > .git/HEAD"),
    attack("HEAD is ten megabytes", Files, "head -c 10000000 /dev/zero > .git/HEAD"),
    attack("HEAD is a FIFO", Files, "rm .git/HEAD; mkfifo .git/HEAD"),
    attack("fsmonitor", Whole, "git config core.fsmonitor \"$CODE\"").with_control("git status > /dev/null"),
    attack(
        "hooks",
        Whole,
        "mkdir .git/h; printf '#!/bin/sh\\n%s\\n' \"$CODE\" > .git/h/pre-commit; \
         for h in post-index-change reference-transaction post-checkout; do cp .git/h/pre-commit .git/h/$h; done; \
         chmod +x .git/h/*; git config core.hooksPath .git/h",
    )
    .with_control("g commit -q --allow-empty -m words"),
    attack(
        "filters",
        Whole,
        "git config filter.t.clean \"$CODE; cat\"; git config filter.t.smudge \"$CODE; cat\"; \
         echo '* filter=t' > .git/info/attributes; echo changed > work",
    )
    .with_control("git add work"),
    attack(
        "an alias, a pager, a diff and an ssh command",
        Whole,
        "git config alias.status \"!$CODE\"; git config core.pager \"$CODE\"; \
         git config diff.external \"$CODE\"; git config core.sshCommand \"$CODE\"; echo changed > work",
    )
    .with_control("git diff > /dev/null"),
    attack(
        "hooks of the transport",
        Whole,
        "git config uploadpack.packObjectsHook \"$CODE\"; git config core.alternateRefsCommand \"$CODE\"",
    ),
    attack(
        "included settings",
        Whole,
        "printf '[core]\\n\\tfsmonitor = %s\\n' \"$CODE\" > .git/more; git config include.path more",
    )
    .with_control("git status > /dev/null"),
    attack(
        "a missing object that a remote helper fetches",
        Files,
        "echo gone > gone; g add gone; c gone; \
         o=$(git rev-parse HEAD:gone); rm -f .git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); \
         git config extensions.partialClone o; git config core.repositoryFormatVersion 1; \
         git config remote.o.promisor true; git config remote.o.url \"ext::sh -c $(echo $CODE | sed 's/ /% /g')\"; \
         git config protocol.ext.allow always",
    )
    .with_control("git cat-file -p HEAD:gone > /dev/null 2>&1 || true"),
    attack("`.git` is a link to the repository's", Files, "rm -r .git; ln -s $COMMON .git"),
    attack("`.git` is a file that leads into the repository", Files, "rm -r .git; echo gitdir: $COMMON > .git"),
    attack(
        "`.git` leads to a hostile repository",
        Files,
        "g init -q .evil; mv .evil/.git .e; rm -r .evil; \
         g --git-dir=.e commit -q --allow-empty -m evil; git --git-dir=.e config core.fsmonitor \"$CODE\"; mv .git .old; echo gitdir: .e > .git; rm -r .old; mkdir -p src; mv .e src/.e",
    ),
    attack("`.git` is gone", Files, "rm -r .git"),
    attack("`.git` is a FIFO", Files, "rm -r .git; mkfifo .git"),
    attack("`.git` is a directory of nothing", Files, "rm -r .git; mkdir -p .git/refs"),
    attack("commondir", Whole, "echo $COMMON > .git/commondir"),
    attack(
        "alternates lead into the worktree",
        Whole,
        "mkdir -p build/o; cp -r .git/objects/?? build/o/; rm -rf .git/objects/??; \
         echo $PWD/build/o >> .git/objects/info/alternates",
    ),
    attack("alternates are empty", Whole, ": > .git/objects/info/alternates"),
    attack("alternates are a circle", Whole, "echo $PWD/.git/objects >> .git/objects/info/alternates"),
    attack("alternates are a FIFO", Files, "rm .git/objects/info/alternates; mkfifo .git/objects/info/alternates").heavy(),
    attack("objects are gone", Files, "rm -rf .git/objects/??"),
    attack(
        "an object has the content of another",
        Files,
        "echo 111 > one; echo 222 > two; g add one two; c both; \
         p() { o=$(git rev-parse HEAD:$1); echo .git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); }; \
         chmod u+w $(p one); cat $(p two) > $(p one)",
    ),
    attack(
        "an object is a FIFO",
        Files,
        "echo 111 > one; g add one; c one; o=$(git rev-parse HEAD:one); \
         f=.git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); rm -f $f; mkfifo $f",
    )
    .heavy(),
    attack(
        "a pack's index never ends",
        Whole,
        "mkdir -p .git/objects/pack; echo x > .git/objects/pack/pack-1111111111111111111111111111111111111111.pack; \
         ln -s /dev/zero .git/objects/pack/pack-1111111111111111111111111111111111111111.idx",
    ),
    attack(
        "the commit graph lies",
        Whole,
        "git commit-graph write --reachable; printf 'CGPH\\1\\1\\0\\0garbage' > .git/objects/info/commit-graph",
    ),
    attack(
        "a list of packs lies",
        Whole,
        "g repack -q -a -d; git multi-pack-index write; printf garbage >> .git/objects/pack/multi-pack-index",
    ),
    attack(
        "grafts, replacements and a shallow end",
        Whole,
        "old=$(git rev-parse HEAD~); git rev-parse HEAD > .git/shallow; mkdir -p .git/info; git rev-parse HEAD > .git/info/grafts; \
         mkdir -p .git/refs/replace; git rev-parse HEAD > .git/refs/replace/$old",
    ),
    attack(
        "a file called .git",
        Files,
        "b=$(echo x | git hash-object -w --stdin); t=$(printf \"100644 blob $b\\t.git\\n\" | git mktree 2>/dev/null || \
         { printf '100644 .git\\0'; bytes $b; } | raw_tree); g reset -q --soft $(on_tree $t)",
    ),
    attack(
        "a path that leads up",
        Files,
        "b=$(echo x | git hash-object -w --stdin); t=$({ printf '100644 ..\\0'; bytes $b; } | raw_tree); \
         g update-ref HEAD $(on_tree $t)",
    ),
    attack(
        "a name with a slash",
        Files,
        "b=$(echo x | git hash-object -w --stdin); t=$({ printf '100644 a/b\\0'; bytes $b; } | raw_tree); \
         g update-ref HEAD $(on_tree $t)",
    ),
    attack(
        "the same name twice",
        Files,
        "b=$(echo x | git hash-object -w --stdin); \
         t=$({ printf '100644 a\\0'; bytes $b; printf '100644 a\\0'; bytes $b; } | raw_tree); \
         g update-ref HEAD $(on_tree $t)",
    ),
    attack(
        "a commit without an address",
        Files,
        "o=$(printf 'tree %s\\nparent %s\\nauthor a 1 +0000\\ncommitter a 1 +0000\\n\\nx\\n' \
         $(git rev-parse HEAD^{tree}) $(git rev-parse HEAD) | git hash-object -t commit -w --literally --stdin); \
         g update-ref HEAD $o",
    ),
    attack(
        "a submodule's address that is an option",
        Not(".gitmodules"),
        "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = --upload-pack=touch\\n' > .gitmodules; g add .gitmodules; c modules",
    ),
    attack("another beginning", Files, "g checkout -q --orphan new; c orphan"),
    attack(
        "too many commits",
        Files,
        "h=$(git rev-parse HEAD); b=$(git symbolic-ref HEAD); \
         { i=0; while [ $i -lt 1100 ]; do i=$((i+1)); \
           printf 'commit %s\\ncommitter a <a@a> %s +0000\\ndata 1\\nx\\n' $b $((1700000000+i)); \
           [ $i = 1 ] && printf 'from %s\\n' $h; done; } | git fast-import --quiet --force",
    ),
    attack("a long message", Files, "head -c 2000000 /dev/zero | tr '\\0' x > .git/m; g commit -q --allow-empty -F .git/m"),
    attack(
        "a message of 200 MB",
        Files,
        "head -c 200000000 /dev/zero | tr '\\0' x > .git/m; g commit -q --allow-empty -F .git/m",
    )
    .heavy(),
    attack(
        "a directory that is far too large, as a small delta",
        Files,
        "b=$(echo x | git hash-object -w --stdin); \
         awk -v b=$b 'BEGIN { for (i = 0; i < 25000; i++) printf \"100644 blob %s\\tf%06d\\n\", b, i }' | git mktree > .git/t; \
         git cat-file tree $(cat .git/t) > .git/one; \
         i=0; while [ $i -lt 40 ]; do i=$((i+1)); cat .git/one; done | raw_tree > .git/many; \
         cat .git/t .git/many | git pack-objects -q .git/objects/pack/pack > .git/pack; git prune-packed -q; \
         test $(du -k .git/objects/pack/*.pack | cut -f1) -lt 4000; g update-ref HEAD $(on_tree $(cat .git/many))",
    ),
    attack(
        "a file of a gigabyte of nothing",
        Files,
        "head -c 1000000000 /dev/zero > .git/z; b=$(git hash-object -w .git/z); rm .git/z; \
         t=$({ git ls-tree HEAD; printf \"100644 blob $b\\tzeros\\n\"; } | git mktree); g update-ref HEAD $(on_tree $t)",
    )
    .heavy(),
    attack(
        "an index that hides files",
        Whole,
        "git update-index --skip-worktree readme; git update-index --assume-unchanged src/lib; \
         echo hidden > readme; echo hidden > src/lib",
    ),
    attack("an index of garbage", Whole, "head -c 100000 /dev/urandom > .git/index"),
    attack("a lock is left", Whole, "touch .git/index.lock .git/HEAD.lock .git/config.lock"),
    attack(
        "a repository inside, as a commit's entry",
        Files,
        "o=$(git rev-parse HEAD); t=$({ git ls-tree HEAD; printf \"160000 commit $o\\tnest\\n\"; } | git mktree --missing); \
         g update-ref HEAD $(on_tree $t)",
    ),
    attack(
        "a repository inside with a filter",
        Not("another repository inside"),
        "g init -q nest; echo one > nest/f; g -C nest add f; g -C nest commit -qm one; g -c advice.addEmbeddedRepo=false add nest; \
         git -C nest config filter.t.clean \"$CODE; cat\"; echo '* filter=t' > nest/.gitattributes; echo two > nest/f",
    )
    .with_control("git status --ignore-submodules=none > /dev/null"),
    attack("a file became a FIFO", Not("is a FIFO"), "rm readme; mkfifo readme"),
    attack("a directory became a link", Whole, "rm -r src; ln -s /etc src"),
    attack("a merge that is not finished", Not("merge is under way"), "git rev-parse HEAD > .git/MERGE_HEAD"),
    attack(
        "names of refs that lead outside",
        Whole,
        "printf '%s refs/heads/../../../x\\n%s refs/heads/a b\\n' $(git rev-parse HEAD) $(git rev-parse HEAD) >> .git/packed-refs",
    ),
    attack("modules with a hook", Whole, "mkdir -p .git/modules/x/hooks; printf '#!/bin/sh\\n%s\\n' \"$CODE\" > .git/modules/x/hooks/post-checkout"),
];
