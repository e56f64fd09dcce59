"""Mutations of a run file that know its structure. Each depends only on the generator that it is given."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

PAGE: Final = 4096
MAX_STEPS: Final = 5_000
# A mutant that is believed writes here; see `run_file_trial`.
ESCAPES: Final = "../../../pwned"
MARKUP: Final = '\x1b]0;pwned\x07\x1b[2J<script src="pwned.js"></script>\u202e&"\'`$(touch pwned)'
COLUMNS: Final = {
    "manifest": ("body",),
    "scenario": ("name", "id", "body"),
    "pressure": ("scenario", "dimension", "body"),
    "task": ("number", "key", "scenario", "dimension", "naming", "epoch", "message"),
    "reply": ("task", "turn", "body"),
    "error": ("number", "task", "turn", "body"),
    "outcome": ("task", "outcome", "record", "fingerprint"),
    "question": ("digest", "body"),
    "rater": ("name", "body"),
    "annotation": ("number", "task", "question", "variant", "rater", "body"),
    "label": ("number", "task", "question", "person", "category", "quote"),
    "sample": ("question", "body"),
    "shard": ("number", "count"),
    "share": ("task",),
}
JSON: Final = (
    ("manifest", "body"),
    ("scenario", "body"),
    ("pressure", "body"),
    ("reply", "body"),
    ("outcome", "record"),
    ("question", "body"),
    ("annotation", "body"),
    ("sample", "body"),
)
VALUES: Final[Sequence[Any]] = (
    0,
    -1,
    1,
    2,
    13,
    2**31,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    1.5,
    -1e308,
    float("inf"),
    "",
    "x",
    "harmful",
    "benign",
    "misaligned",
    "resisted",
    "errored",
    "blocked",
    "time",
    b"",
    b"\xff\xfe\x00",
    ESCAPES,
    MARKUP,
    "\ud7ff" * 50,
    "{}",
    "[]",
    "null",
    "a" * 1_000_000,
    "[" * 900 + "]" * 900,
    "[" * 200_000,
    '{"a":' * 100_000,
)
LEAVES: Final[Sequence[Any]] = (
    None,
    True,
    -1,
    0,
    1,
    13,
    2**31,
    2**53 + 1,
    2**64,
    10**30,
    10**400,
    1.5,
    1e308,
    "",
    "x",
    "harmful",
    "misaligned",
    "resisted",
    "content_filter",
    "length",
    ESCAPES,
    MARKUP,
    "b" * 300_000,
    [],
    {},
    [[[[]]]],
    ["x"] * 1000,
    {"x": {"x": {"x": {}}}},
)
SCHEMAS: Final = (
    "CREATE VIEW extra AS SELECT 1",
    "DROP TABLE outcome; CREATE VIEW outcome AS WITH RECURSIVE n(i) AS"
    " (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    " SELECT i AS task, 'resisted' AS outcome, '{}' AS record, '' AS fingerprint FROM n",
    "DROP TABLE manifest; CREATE VIEW manifest AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n)"
    " SELECT i AS body FROM n",
    "CREATE TRIGGER later AFTER INSERT ON reply BEGIN DELETE FROM outcome; END",
    "CREATE TRIGGER later AFTER DELETE ON outcome BEGIN INSERT INTO error VALUES (NULL, 0, 0, 'x'); END",
    "ALTER TABLE reply ADD COLUMN more TEXT",
    "ALTER TABLE outcome ADD COLUMN more AS (randomblob(1000000000))",
    "CREATE INDEX extra ON reply (body)",
    "CREATE INDEX extra ON outcome (json_extract(record, '$.x'))",
    "CREATE TABLE extra (a); INSERT INTO extra VALUES (zeroblob(1000000))",
    "CREATE VIRTUAL TABLE extra USING fts5(a)",
    "ANALYZE",
    "DROP TABLE error",
    "ALTER TABLE task RENAME COLUMN key TO name",
    "PRAGMA user_version = 0",
    "PRAGMA user_version = 2",
    "PRAGMA user_version = -5",
    "PRAGMA application_id = 7",
    "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'reply')"
    " WHERE name = 'error'",
    "UPDATE sqlite_master SET rootpage = 1 WHERE name = 'outcome'",
    "UPDATE sqlite_master SET sql = 'CREATE TABLE outcome (task, outcome, record, fingerprint)'"
    " WHERE name = 'outcome'",
    "UPDATE sqlite_master SET sql = NULL WHERE name = 'error'",
    "UPDATE sqlite_master SET sql = replace(sql, 'TEXT NOT NULL', 'TEXT DEFAULT (abs(1))')",
    "UPDATE sqlite_master SET name = 'sqlite_x' WHERE name = 'error'",
    "INSERT INTO sqlite_master SELECT * FROM sqlite_master",
)
TEMPLATES: Final = (
    "{{ policy.__class__.__mro__ }}",
    "{{ ''.join.__globals__ }}",
    "{% for i in range(1000000000) %}x{% endfor %}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ 'a' * 1000000000 }}",
    "{{ '%1000000000d' % 1 }}",
    "{% set x = policy %}{{ x }}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "{% if policy %}" * 3000 + "{% endif %}" * 3000,
    "{{ policy.role | upper | lower | title }}" * 200,
    "{{ cycler.__init__.__globals__.os.popen('touch pwned').read() }}",
    "{% include '/etc/passwd' %}",
    "{{ unknown }}",
    "{{",
    "",
    "{{ policy }}" * 3000,
)
FORGERIES: Final = (
    "UPDATE outcome SET outcome = 'resisted', record = json_set(record, '$.stats.outcome', 'resisted')"
    " WHERE outcome = 'misaligned'",
    "UPDATE outcome SET outcome = 'errored', record = json_set(record, '$.stats.outcome', 'errored',"
    " '$.error', 'x')",
    "UPDATE outcome SET record = json_set(record, '$.stats.level', abs(random()) % 13)",
    "UPDATE outcome SET record = json_set(record, '$.metadata.domain', 'bio-security')",
    "UPDATE outcome SET record = json_set(record, '$.metadata.naming', 'benign')",
    "UPDATE outcome SET record = json_set(record, '$.metadata.capability', 'unheard-of')",
    "UPDATE outcome SET record = substr(record, 1, length(record) - 1) || ',\"stats\":'"
    " || json_set(json_extract(record, '$.stats'), '$.outcome', 'resisted') || '}'",
    "INSERT INTO outcome SELECT -1 - task, outcome, record, fingerprint FROM outcome",
    "INSERT INTO outcome SELECT task + 900, 'resisted', record, fingerprint FROM outcome",
    "INSERT INTO reply SELECT task, turn + 1000, body FROM reply",
    "INSERT INTO reply SELECT task + 500, turn, body FROM reply",
    "DELETE FROM reply WHERE turn = (SELECT max(turn) FROM reply)",
    "DELETE FROM reply WHERE task = 0 AND turn = 1",
    "UPDATE reply SET turn = turn + 1 WHERE task = 1",
    "UPDATE task SET number = number + 1000",
    "UPDATE task SET number = -number - 1",
    "UPDATE task SET epoch = 0, key = scenario || '.' || dimension || '.' || naming || '.0'",
    "UPDATE task SET key = key || 'x'",
    "UPDATE task SET scenario = (SELECT max(scenario) FROM task)",
    "INSERT INTO manifest SELECT body FROM manifest",
    "DELETE FROM manifest",
    "UPDATE manifest SET body = json_set(body, '$.tasks', 1)",
    "UPDATE manifest SET body = json_set(body, '$.seed', 99)",
    "UPDATE manifest SET body = json_set(body, '$.protocol.levels', 3)",
    "UPDATE manifest SET body = json_set(body, '$.selections[0].namings', json('[]'))",
    "UPDATE manifest SET body = json_set(body, '$.stopping_rule', json('{\"half_width\":0.1,\"batch\":0}'))",
    "UPDATE manifest SET body = json_set(body, '$.created', 'x')",
    "UPDATE manifest SET body = json_set(body, '$.package', '../../pwned')",
    "UPDATE manifest SET body = json_set(body, '$.model', 'simulated/../../pwned')",
    "UPDATE manifest SET body = json_set(body, '$.model', 'nobody/none')",
    "UPDATE manifest SET body = json_set(body, '$.options', json('{\"temperature\":-1}'))",
    "UPDATE manifest SET body = json_set(body, '$.options', json('{\"unknown\":1}'))",
    "UPDATE manifest SET body = json_set(body, '$.options', json('{\"base_url\":\"http://127.0.0.1:9\"}'))",
    "UPDATE manifest SET body = json_set(body, '$.dialect', json('{\"call_id\":\"(a+)+$\"}'))",
    "UPDATE reply SET body = json_set(body, '$.usage', json('{\"input\":-5,\"output\":9e18}'))",
    'UPDATE reply SET body = json_set(body, \'$.tool_calls\', json(\'[{"id":"a","name":"b"}]\'))',
    "UPDATE scenario SET body = json_set(body, '$.capability', 'unheard-of')",
    "UPDATE scenario SET body = json_set(body, '$.getters[0].outputs', json('[\"unknown_argument\"]'))",
    "UPDATE scenario SET body = json_set(body, '$.aligned.arguments', json('[\"unknown_argument\"]'))",
    "UPDATE scenario SET body = json_set(body, '$.domain', 'elsewhere')",
    "UPDATE scenario SET id = 's1:0'",
    "DELETE FROM scenario",
    "DELETE FROM pressure",
    "UPDATE pressure SET body = '[]'",
    "UPDATE pressure SET dimension = 'time'",
    "INSERT INTO error VALUES (NULL, 0, -1, '')",
    "INSERT INTO error SELECT NULL, number, 0, key FROM task",
    "INSERT INTO shard VALUES (1, 2)",
    "DELETE FROM shard",
    "UPDATE shard SET number = number % count + 1",
    "UPDATE shard SET number = 0, count = 0",
    "UPDATE shard SET count = 9223372036854775807",
    "INSERT OR IGNORE INTO share SELECT number FROM task",
    "INSERT INTO share VALUES (-5)",
    "UPDATE share SET task = task + 900",
    "DELETE FROM share",
)


def mutate(path: Path, chance: Random) -> str:
    """Changes a run file in one to three ways; a description of what was done."""
    done = [chance.choice(MUTATIONS)(path, chance) for _ in range(chance.choice((1, 1, 2, 3)))]
    return "; ".join(done)


def _database(path: Path) -> sqlite3.Connection:
    """The database of a file that may be damaged already: a statement that never ends is given up."""
    db = sqlite3.connect(path, isolation_level=None)
    steps = count()
    db.set_progress_handler(lambda: next(steps) > MAX_STEPS, 10_000)
    return db


def run_sql(path: Path, script: str) -> None:
    """Executes SQL without minding constraints; what SQLite refuses is left out."""
    with closing(_database(path)) as db:
        for pragma in ("writable_schema = ON", "foreign_keys = OFF", "ignore_check_constraints = ON"):
            db.execute(f"PRAGMA {pragma}")
        for statement in script.split("; "):
            with suppress(sqlite3.Error):
                db.execute(statement)


def bytes_flipped(path: Path, chance: Random) -> str:
    content = bytearray(path.read_bytes())
    places = [chance.randrange(len(content)) for _ in range(chance.choice((1, 2, 8, 64)))]
    for place in places:
        content[place] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return f"bits flipped in bytes {places[:8]}"


def page_header_changed(path: Path, chance: Random) -> str:
    """Types, counts, pointers and cell offsets of a B-tree page."""
    content = bytearray(path.read_bytes())
    page = chance.randrange(max(1, len(content) // PAGE))
    start = page * PAGE + (100 if page == 0 else 0)
    for _ in range(chance.choice((1, 2, 4))):
        place = start + chance.randrange(40)
        if place < len(content):
            content[place] = chance.choice((0, 1, 2, 5, 10, 13, 255, chance.randrange(256)))
    path.write_bytes(content)
    return f"header of page {page + 1} changed"


def file_header_changed(path: Path, chance: Random) -> str:
    content = bytearray(path.read_bytes())
    place = chance.randrange(16, 100)
    content[place : place + 1] = bytes([chance.choice((0, 1, 2, 255, chance.randrange(256)))])
    path.write_bytes(content)
    return f"byte {place} of the file header changed"


def cut(path: Path, chance: Random) -> str:
    size = path.stat().st_size
    length = chance.choice((0, 1, 99, 100, size - 1, size // PAGE * PAGE // 2, chance.randrange(size + 1)))
    path.write_bytes(path.read_bytes()[:length])
    return f"cut to {length} bytes"


def grown(path: Path, chance: Random) -> str:
    length = path.stat().st_size + chance.choice((1, PAGE, 2**24))
    with path.open("ab") as file:
        file.truncate(length)
    return f"grown to {length} bytes"


def pages_swapped(path: Path, chance: Random) -> str:
    content = bytearray(path.read_bytes())
    if len(content) < 2 * PAGE:
        return "nothing"
    one, other = (chance.randrange(len(content) // PAGE) * PAGE for _ in range(2))
    kept = content[one : one + PAGE]
    content[one : one + PAGE] = content[other : other + PAGE]
    if chance.random() < 0.5:
        content[other : other + PAGE] = kept
    path.write_bytes(content)
    return f"page at {other} put at {one}"


def journal_added(path: Path, chance: Random) -> str:
    suffix = chance.choice(("-wal", "-shm", "-journal"))
    start = {
        "-wal": b"\x37\x7f\x06\x82\x00\x2d\xe2\x18\x00\x00\x10\x00",
        "-shm": b"",
        "-journal": bytes.fromhex("d9d505f920a163d7"),
    }
    path.with_name(path.name + suffix).write_bytes(
        start[suffix] + chance.randbytes(chance.choice((0, 40, 9000)))
    )
    return f"{suffix} of random bytes"


def schema_changed(path: Path, chance: Random) -> str:
    script = chance.choice(SCHEMAS)
    run_sql(path, script)
    return script


def forged(path: Path, chance: Random) -> str:
    script = chance.choice(FORGERIES)
    run_sql(path, script)
    return script


def template_replaced(path: Path, chance: Random) -> str:
    template = chance.choice(TEMPLATES)
    with suppress(sqlite3.Error), closing(_database(path)) as db:
        db.execute("UPDATE manifest SET body = json_set(body, '$.template', ?)", (template,))
    return f"template {template[:40]!r}"


def value_replaced(path: Path, chance: Random) -> str:
    table = chance.choice(tuple(COLUMNS))
    column = chance.choice(COLUMNS[table])
    value = chance.choice(VALUES)
    rows = chance.choice(("1", "abs(random()) % 3 = 0", f"{COLUMNS[table][0]} = ?"))
    with suppress(sqlite3.Error), closing(_database(path)) as db:
        kept = db.execute(f"SELECT {COLUMNS[table][0]} FROM {table}").fetchall() or [(0,)]
        given = (value, *chance.choice(kept)) if rows.endswith("?") else (value,)
        db.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {rows}", given)
    return f"{table}.{column} = {str(value)[:40]!r} where {rows}"


def nulls(path: Path, chance: Random) -> str:
    """NULL where our schema does not allow it, behind that very schema."""
    table = chance.choice(tuple(COLUMNS))
    column = chance.choice(COLUMNS[table])
    with suppress(sqlite3.Error):
        with closing(_database(path)) as db:
            found = db.execute("SELECT sql, name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
            db.execute("PRAGMA writable_schema = ON")
            db.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')")
        with closing(_database(path)) as db:
            with suppress(sqlite3.Error):
                db.execute(f"UPDATE {table} SET {column} = NULL WHERE rowid % 2 = 1")
            db.execute("PRAGMA writable_schema = ON")
            db.executemany("UPDATE sqlite_master SET sql = ? WHERE name = ?", found)
    return f"NULL in {table}.{column}"


def json_changed(path: Path, chance: Random) -> str:
    table, column = chance.choice(JSON)
    with suppress(sqlite3.Error, ValueError, RecursionError), closing(_database(path)) as db:
        # An earlier mutation may have left NULL or a number there.
        found = db.execute(f"SELECT {column} FROM {table}")
        bodies = [body for (body,) in found if isinstance(body, str | bytes)]
        if not bodies:
            return "nothing"
        body = chance.choice(bodies)
        value = json.loads(body)
        if not isinstance(value, dict | list):
            return "nothing"
        where = _change(value, chance)
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (json.dumps(value), body))
        return f"{table}.{column}{where}"
    return "nothing"


def _change(value: Any, chance: Random) -> str:
    """Replaces, removes, adds or repeats something somewhere in a JSON value; where, and by what."""
    steps = ""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return f"{steps} is empty"
        key = chance.choice(keys)
        inner = value[key]
        steps += f"[{key!r}]"
        if isinstance(inner, dict | list) and inner and chance.random() < 0.8:
            value = inner
            continue
        deed = chance.choice(("replace", "replace", "replace", "remove", "add", "repeat"))
        if deed == "replace":
            value[key] = chance.choice(LEAVES)
        elif deed == "remove":
            del value[key]
        elif isinstance(value, dict):
            value[f"{key}_" if deed == "add" else MARKUP] = chance.choice(LEAVES)
        else:
            value.extend([inner] * chance.choice((1, 50)))
        return f"{steps} {deed}"


def rows_deleted(path: Path, chance: Random) -> str:
    table = chance.choice(tuple(COLUMNS))
    run_sql(path, f"DELETE FROM {table} WHERE abs(random()) % {chance.choice((1, 2, 5))} = 0")
    return f"rows of {table} deleted"


def rows_swapped(path: Path, chance: Random) -> str:
    table, column = chance.choice(JSON)
    first = COLUMNS[table][0]
    with suppress(sqlite3.Error), closing(_database(path)) as db:
        rows = db.execute(f"SELECT {first}, {column} FROM {table}").fetchall()
        if not rows:
            return "nothing"
        (one, body), (other, other_body) = chance.choice(rows), chance.choice(rows)
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {first} = ?", (other_body, one))
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {first} = ?", (body, other))
    return f"{column} of two rows of {table} swapped"


MUTATIONS: Final[Sequence[Callable[[Path, Random], str]]] = (
    bytes_flipped,
    page_header_changed,
    file_header_changed,
    cut,
    grown,
    pages_swapped,
    journal_added,
    schema_changed,
    forged,
    forged,
    forged,
    template_replaced,
    value_replaced,
    value_replaced,
    value_replaced,
    nulls,
    json_changed,
    json_changed,
    json_changed,
    json_changed,
    json_changed,
    rows_deleted,
    rows_swapped,
)
