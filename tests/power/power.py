#!/usr/bin/env python3
"""Cuts the power under ccb and looks at what is left.

Called by run.sh, which installs what is needed. Each round makes a small file system in a file,
lets ccb work on it, cuts it off from its disk (FS_IOC_SHUTDOWN without flushing the log: from
then on nothing reaches the image), mounts it again, and compares it with what ccb had
acknowledged. Acknowledgements are kept elsewhere: a command counts when it has ended with 0.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

COMMAND_LIMIT = 60
SESSION_LIMIT = 180


class Hang(Exception):
    pass


class Disk:
    """A file system in a file, and how to pull its plug."""

    def __init__(self, kind, scratch):
        self.kind = kind
        self.image = os.path.join(scratch, f"{kind}.img")
        self.dir = os.path.join(scratch, f"{kind}-mnt")
        self.mounted = False

    def make(self):
        self.remove()
        with open(self.image, "wb") as image:
            image.truncate(1 << 30)
        make = {
            "xfs": ["mkfs.xfs", "-q", "-f", self.image],
            "ext4": ["mkfs.ext4", "-q", "-F", "-O", "has_journal",
                     "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image],
        }
        subprocess.run(make[self.kind], check=True, stdout=subprocess.DEVNULL)
        os.makedirs(self.dir, exist_ok=True)
        self.mount()

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.image, self.dir], check=True)
        self.mounted = True

    def cut(self):
        subprocess.run(["xfs_io", "-x", "-c", "shutdown", self.dir], check=True,
                       stdout=subprocess.DEVNULL)

    def users(self):
        """Processes that work on this file system: ours, because nobody else knows of it."""
        mark = self.dir.encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) == os.getpid():
                continue
            try:
                with open(f"/proc/{pid}/environ", "rb") as environ:
                    ours = mark in environ.read()
                ours = ours or os.readlink(f"/proc/{pid}/cwd").startswith(self.dir)
            except OSError:
                continue
            if ours:
                found.append(int(pid))
        return found

    def unmount(self):
        if not self.mounted:
            return
        deadline = time.monotonic() + 30
        while True:
            for pid in self.users():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            done = subprocess.run(["umount", self.dir], capture_output=True, text=True)
            if done.returncode == 0:
                break
            if time.monotonic() > deadline:
                raise Hang(f"umount: {done.stderr.strip()}")
            time.sleep(0.1)
        self.mounted = False

    def replug(self):
        """What a reboot does: everything in memory is gone, the journal is replayed."""
        self.unmount()
        self.mount()

    def remove(self):
        self.unmount()
        if os.path.exists(self.image):
            os.unlink(self.image)


class Place:
    """A home and a repository on a disk."""

    def __init__(self, disk, ccb, durable):
        self.disk, self.ccb = disk, ccb
        self.home = os.path.join(disk.dir, "home")
        self.repo = os.path.join(disk.dir, "repo")
        os.makedirs(self.home)
        os.makedirs(self.repo)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": self.home, "CCB_HOME": self.home,
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
        }
        for role in ("AUTHOR", "COMMITTER"):
            self.env[f"GIT_{role}_NAME"] = "power"
            self.env[f"GIT_{role}_EMAIL"] = "power@example.com"
        settings = {"agents": {"stopGraceMs": 300}, "worktree": {"durable": durable}}
        self.write(os.path.join(self.home, "ccb.json"), json.dumps(settings))
        self.git("init", "-q", "-b", "main")
        for name in range(30):
            self.write(os.path.join(self.repo, f"src/file{name}"), f"line of {name}\n" * 40)
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        # What was there before is not what is tested.
        subprocess.run(["sync", "-f", disk.dir], check=True)

    @staticmethod
    def write(path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def run(self, argv, cwd=None, limit=COMMAND_LIMIT):
        child = subprocess.Popen(argv, cwd=cwd or self.repo, env=self.env, text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        try:
            out, err = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired as error:
            child.kill()
            child.communicate()
            raise Hang(f"{' '.join(argv)} did not end in {limit} s") from error
        return child.returncode, out, err

    def git(self, *args, cwd=None):
        code, out, err = self.run(["git", *args], cwd=cwd)
        if code != 0:
            said = " ".join((err + out).split())
            raise RuntimeError(f"git {' '.join(args)}: {said}")
        return out

    def start(self, *args, limit=COMMAND_LIMIT):
        return self.run([self.ccb, "--team", "board", "--list", "board", *args], limit=limit)

    def ask(self, *args, limit=COMMAND_LIMIT):
        """The answer of a command, or None if it did not succeed."""
        code, out, _ = self.start("--json", *args, limit=limit)
        if code != 0:
            return None
        return json.loads(out.strip().splitlines()[-1]) if out.strip() else {}

    def must(self, *args, limit=COMMAND_LIMIT):
        code, out, err = self.start("--json", *args, limit=limit)
        if code != 0:
            raise RuntimeError(f"ccb {' '.join(args)}: exit {code}: {out.strip()} {err.strip()}")
        return json.loads(out.strip().splitlines()[-1]) if out.strip() else {}


class Round:
    """What was acknowledged in one round, and what of it is missing."""

    def __init__(self, place, rng):
        self.place, self.rng = place, rng
        self.acked, self.losses = [], []
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.cutting = False

    def ack(self, *what):
        """Notes what a command that has ended well has promised.

        Only while there was power: an fsync that is under way when an ext4 is shut down may
        return as if all was well, which a computer without power cannot do.
        """
        with self.lock:
            if not self.cutting or what[0] == "removing":
                self.acked.append(what)

    def all(self, kind):
        return [what[1:] for what in self.acked if what[0] == kind]

    def lost(self, text):
        self.losses.append(text)

    def expect(self, *args, limit=COMMAND_LIMIT):
        """A command that has to work again, if need be after `doctor --fix`."""
        try:
            return self.place.must(*args, limit=limit)
        except RuntimeError as first:
            self.place.ask("doctor", "--fix")
            try:
                return self.place.must(*args, limit=limit)
            except RuntimeError as second:
                self.lost(f"does not work any more: {first}; after doctor --fix: {second}")
                return None

    def workers(self, works, seconds):
        """Lets several work at once, then cuts the power under them."""
        def loop(work, number):
            rng = random.Random(f"{self.rng.random()}-{number}")
            count = 0
            while not self.over.is_set():
                count += 1
                try:
                    work(self, number, count, rng)
                except (Hang, RuntimeError, OSError, ValueError):
                    if self.over.is_set():
                        return
        threads = [threading.Thread(target=loop, args=(work, number), daemon=True)
                   for number, work in enumerate(works)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        with self.lock:
            self.cutting = True
        self.place.disk.cut()
        self.over.set()
        for thread in threads:
            thread.join()


# The board.

def board_writer(round_, number, count, rng):
    place = round_.place
    subject = f"task {number}-{count}"
    answer = place.ask("task", "create", subject)
    if answer is None:
        return
    task = answer["task"]["id"]
    round_.ack("created", task, subject)
    what = rng.randrange(4)
    if what == 0 and place.ask("--as", f"w{number}", "task", "claim", task) is not None:
        round_.ack("claimed", task)
        if place.ask("--as", f"w{number}", "task", "done", task) is not None:
            round_.ack("done", task)
    elif what == 1:
        # Not acknowledged as gone, and not to be missed either.
        round_.ack("removing", task)
        if place.ask("task", "rm", task) is not None:
            round_.ack("removed", task)


def board(round_):
    round_.workers([board_writer] * 3, 1.0 + 2 * round_.rng.random())
    round_.place.disk.replug()
    listed = round_.expect("task", "list")
    if listed is None:
        return
    tasks = {task["id"]: task for task in listed["tasks"]}
    removing = {task for (task,) in round_.all("removing")}
    for task, subject in round_.all("created"):
        if task in removing:
            continue
        if task not in tasks:
            round_.lost(f"task {task} is gone")
        elif tasks[task]["subject"] != subject:
            round_.lost(f"task {task} is another one")
    for (task,) in round_.all("done"):
        if task in tasks and tasks[task]["status"] != "completed":
            round_.lost(f"task {task} is {tasks[task]['status']} again")
    for (task,) in round_.all("removed"):
        if task in tasks:
            round_.lost(f"task {task} is back")
    new = round_.expect("task", "create", "after the cut")
    used = [int(task) for task, _ in round_.all("created")]
    if new and used and int(new["task"]["id"]) <= max(used):
        round_.lost(f"id {new['task']['id']} was given out twice (up to {max(used)} were)")


# Mail.

def mail_sender(round_, number, count, rng):
    to = rng.choice(["ann", "bob", "*"])
    text = f"message {number}-{count}"
    if round_.place.ask("--as", f"w{number}", "mail", "send", to, text) is not None:
        for name in ["ann", "bob"] if to == "*" else [to]:
            round_.ack("sent", name, text)


def mail_reader(round_, _number, _count, rng):
    name = rng.choice(["ann", "bob"])
    answer = round_.place.ask("--as", name, "mail", "read")
    messages = (answer or {}).get("messages") or []
    if messages and rng.random() < 0.7:
        last = max(message["seq"] for message in messages)
        round_.place.ask("--as", name, "mail", "ack", str(last))


def mail(round_):
    place = round_.place
    place.must("team", "create", "board")
    for name in ["ann", "bob", "w0", "w1", "w2"]:
        place.must("--as", name, "team", "join", "board")
    subprocess.run(["sync", "-f", place.disk.dir], check=True)
    round_.workers([mail_sender] * 3 + [mail_reader], 1.0 + 2 * round_.rng.random())
    place.disk.replug()
    for name in ["ann", "bob"]:
        found = set()
        # Whatever its state: in the log, or in an archive of what was acknowledged.
        inbox = os.path.join(place.home, "teams/board/inboxes", name)
        if round_.expect("--as", name, "mail", "inbox") is None:
            continue
        # Copies what was sent to everyone, if the cut came before that.
        round_.expect("mail", "send", name, "after the cut")
        for file in os.listdir(inbox):
            if file.endswith(".jsonl"):
                with open(os.path.join(inbox, file), "rb") as log:
                    found.update(re.findall(rb"message [0-9]+-[0-9]+", log.read()))
        for to, text in round_.all("sent"):
            if to == name and text.encode() not in found:
                round_.lost(f"{text!r} to {name} is gone")
        answer = round_.expect("--as", name, "mail", "read")
        texts = [message.get("text") for message in (answer or {}).get("messages", [])]
        if "after the cut" not in texts:
            round_.lost(f"{name} does not get new mail: {texts}")


# Worktrees.

def prepare_trees(round_):
    """Worktrees with commits in them, on the disk: what a person's own git does is not tested."""
    place = round_.place
    ready = []
    for number in range(8):
        name = f"t{number}"
        place.must("worktree", "create", name)
        path = os.path.join(place.repo, ".claude/worktrees", name)
        place.write(os.path.join(path, f"new/{name}"), f"work of {name}\n" * 20)
        place.git("add", ".", cwd=path)
        place.git("commit", "-qm", f"work {name}", cwd=path)
        ready.append((name, place.git("rev-parse", "HEAD", cwd=path).strip()))
        round_.ack("made", name)
    subprocess.run(["sync", "-f", place.disk.dir], check=True)
    return ready


def tree_user(ready):
    def work(round_, _number, _count, rng):
        place = round_.place
        with round_.lock:
            if not ready:
                time.sleep(0.01)
                return
            name, commit = ready.pop()
        fate = rng.randrange(3)
        if fate < 2:
            if place.ask("worktree", "merge", name) is None:
                return
            round_.ack("merged", name, commit)
        if fate > 0:
            round_.ack("removing", name)
            if place.ask("worktree", "remove", "--discard", name) is not None:
                round_.ack("removed", name, commit)
    return work


def tree_maker(round_, number, count, rng):
    place = round_.place
    name = f"n{number}-{count}"
    if place.ask("worktree", "create", name) is None:
        return
    round_.ack("made", name)
    if rng.randrange(2) == 0:
        round_.ack("removing", name)
        if place.ask("worktree", "remove", name) is not None:
            round_.ack("removed", name, None)


def trees(round_):
    place = round_.place
    ready = prepare_trees(round_)
    begun = list(ready)
    round_.workers([tree_user(ready), tree_user(ready), tree_maker], 0.3 + 1.5 * round_.rng.random())
    place.disk.replug()
    check_git(round_)
    listed = round_.expect("worktree", "list")
    if listed is None:
        return
    there = {tree["name"]: tree for tree in listed["worktrees"] if tree["status"] != "removed"}
    for name, commit in round_.all("merged"):
        if not on_main(place, commit):
            round_.lost(f"{name} had landed and is not on main")
    if place.git("status", "--porcelain", "--untracked-files=no").strip():
        # A landing that nobody was told of may be half done; then the branch has not moved.
        round_.ack("half-landed")
    removing = {name for (name,) in round_.all("removing")}
    removed = dict(round_.all("removed"))
    for name, commit in begun:
        code, _, _ = place.run(["git", "cat-file", "-e", commit])
        if code != 0:
            round_.lost(f"the commit of {name} is gone")
    for (name,) in round_.all("made"):
        path = os.path.join(place.repo, ".claude/worktrees", name)
        if name in removed:
            if name in there:
                round_.lost(f"{name} was removed and is back")
        elif name not in removing:
            if name not in there:
                round_.lost(f"worktree {name} is gone")
                continue
            with open(os.path.join(path, "src/file7")) as file:
                if file.read() != "line of 7\n" * 40:
                    round_.lost(f"worktree {name}: src/file7 is not what was checked out")
            try:
                place.git("status", "--porcelain", cwd=path)
            except RuntimeError as error:
                round_.lost(f"worktree {name}: {error}")
    # What was removed can be brought back, with its commits.
    for name, commit in [item for item in removed.items() if item[1]][-2:]:
        if round_.expect("worktree", "undo", name) is not None:
            path = os.path.join(place.repo, ".claude/worktrees", name)
            try:
                if place.git("rev-parse", "HEAD", cwd=path).strip() != commit:
                    round_.lost(f"worktree {name} came back without its commit")
                place.git("status", "--porcelain", cwd=path)
            except RuntimeError as error:
                round_.lost(f"worktree {name} came back broken: {error}")
    for name in ["after-the-cut", *[name for name in removing if name not in removed][-1:]]:
        round_.expect("worktree", "create", name)
    for name, _ in ready[:1]:
        round_.expect("worktree", "merge", name)
    check_doctor(round_)


def on_main(place, commit):
    try:
        place.git("merge-base", "--is-ancestor", commit, "main")
        return True
    except RuntimeError:
        return False


def check_git(round_):
    # What nobody was told of may be torn; the doctor moves that out of the way.
    round_.place.ask("doctor", "--fix")
    try:
        round_.place.git("fsck", "--no-dangling", "--no-progress", "--connectivity-only")
        round_.place.git("log", "--oneline", "-1", "main")
    except RuntimeError as error:
        round_.lost(str(error))


def check_doctor(round_):
    """Whatever is found can be put right."""
    round_.expect("doctor", "--fix")
    code, out, _ = round_.place.start("--json", "doctor")
    if code != 0:
        round_.lost(f"the doctor still finds: {out.strip()}")


# Sessions.

TASKS = 6


def put_tasks(place):
    for number in range(TASKS):
        run = f"mkdir -p out && seq {number} 400 > out/{number}"
        place.must("task", "create", f"write {number}", "--run", run,
                   "--verify", f"test -s out/{number}")


def session(place):
    return place.start("--json", "--runtime", "shell", "--mates", "3", limit=SESSION_LIMIT)


def check_session(round_):
    place = round_.place
    check_git(round_)
    listed = round_.expect("task", "list")
    for task in (listed or {}).get("tasks", []):
        result = ((task.get("metadata") or {}).get("ccb") or {}).get("result") or {}
        if task["status"] == "completed" and result.get("commit"):
            code, _, _ = place.run(["git", "cat-file", "-e", result["commit"]])
            if code != 0:
                round_.lost(f"task {task['id']} is completed, but its commit is not there")
    return {task["id"]: task["status"] for task in (listed or {}).get("tasks", [])}


def check_landed(round_):
    for number in range(TASKS):
        path = os.path.join(round_.place.repo, f"out/{number}")
        want = "".join(f"{line}\n" for line in range(number, 401))
        try:
            if round_.place.git("show", f"main:out/{number}") != want:
                round_.lost(f"out/{number} on main is not what was written")
        except RuntimeError as error:
            round_.lost(f"out/{number} is not on main: {error}")
            continue
        if not os.path.exists(path) or os.path.getsize(path) != len(want):
            round_.lost(f"out/{number} is on main, but not in the working tree")


def finished(round_):
    place = round_.place
    put_tasks(place)
    code, out, err = session(place)
    if code != 0:
        raise RuntimeError(f"the session ended with {code}: {out} {err}")
    # At once, and when the system has begun to write by itself.
    time.sleep(round_.rng.choice([0, 0, 0, 1, 3, 6]))
    place.disk.cut()
    place.disk.replug()
    states = check_session(round_)
    if sorted(states.values()) != ["completed"] * TASKS:
        round_.lost(f"tasks are {states} after the session ended with 0")
    check_landed(round_)
    again(round_)


def middle(round_):
    place = round_.place
    put_tasks(place)
    thread = threading.Thread(target=lambda: quietly(session, place), daemon=True)
    thread.start()
    # Anywhere between the first worktree and the last: whatever the machine's speed.
    events = os.path.join(place.repo, ".git/ccb/events.jsonl")
    enough = round_.rng.randrange(1, 9 * TASKS)
    while thread.is_alive() and lines_in(events) < enough:
        time.sleep(0.002)
    time.sleep(0.05 * round_.rng.random())
    place.disk.cut()
    place.disk.unmount()
    thread.join()
    place.disk.mount()
    check_session(round_)
    again(round_)
    check_landed(round_)


def lines_in(path):
    try:
        with open(path, "rb") as file:
            return file.read().count(b"\n")
    except OSError:
        return 0


def quietly(call, *args):
    try:
        call(*args)
    except (Hang, RuntimeError, OSError):
        pass


def again(round_):
    """The session, once more: it finishes, at once or with the doctor's help."""
    for attempt in range(2):
        code, out, err = session(round_.place)
        if code == 0:
            break
        if attempt:
            round_.lost(f"a restarted session ends with {code}: {out[-600:]} {err[-300:]}")
        round_.place.ask("doctor", "--fix")
    check_doctor(round_)


PARTS = {"board": board, "mail": mail, "trees": trees, "finished": finished, "middle": middle}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ccb", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--fs", default="xfs,ext4")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--dir", default=None)
    parser.add_argument("--not-durable", action="store_true",
                        help="with worktree.durable off: losses are expected")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int(time.time())
    print(f"seed {seed}; ccb {args.ccb}", flush=True)
    scratch = tempfile.mkdtemp(prefix="ccb-power-", dir=args.dir)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    table, failed = [], False
    disks = [Disk(kind, scratch) for kind in args.fs.split(",")]
    try:
        for disk in disks:
            for part in args.parts.split(","):
                begun = time.monotonic()
                acked = lost = hangs = 0
                for number in range(args.rounds):
                    rng = random.Random(f"{seed}-{disk.kind}-{part}-{number}")
                    disk.make()
                    round_ = Round(Place(disk, args.ccb, not args.not_durable), rng)
                    try:
                        PARTS[part](round_)
                    except Hang as hang:
                        hangs += 1
                        round_.lost(f"hang: {hang}")
                    acked += len(round_.acked)
                    lost += 1 if round_.losses else 0
                    for loss in round_.losses:
                        print(f"{disk.kind} {part} round {number}: {loss}", flush=True)
                    disk.remove()
                failed = failed or lost > 0
                row = (disk.kind, part, args.rounds, acked, lost, hangs,
                       round(time.monotonic() - begun))
                table.append(row)
                print("  ".join(str(cell) for cell in row), flush=True)
    finally:
        for disk in disks:
            disk.remove()
        shutil.rmtree(scratch, ignore_errors=True)
    head = ("fs", "under", "rounds", "acknowledged", "rounds with losses", "hangs", "seconds")
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in table:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
