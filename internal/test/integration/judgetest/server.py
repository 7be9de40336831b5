"""A game's server in Python. It is honest: it does what the interface says. -policy gives
it rules that real games have, which are honest too. -fault gives it one bug.

It prints its URL once it serves. A player who logs in owns 1000 of each asset."""

import argparse
import collections
import contextlib
import decimal
import hashlib
import hmac
import http.server
import json
import os
import re
import secrets
import socketserver
import sqlite3
import sys
import threading
import time
import uuid
import wsgiref.simple_server

import secp256k1

flags = argparse.ArgumentParser()
flags.add_argument("-port", type=int, default=0)
flags.add_argument("-data", help="the database; a server that is started again with it knows its orders")
flags.add_argument("-http", choices=["threads", "wsgi", "single"], default="threads")
flags.add_argument("-numbers", choices=["exact", "doubles"], default="exact")
flags.add_argument("-policy", default="")
flags.add_argument("-fault", default="")
flags.add_argument("-list", action="store_true", help="print the faults")
flags.add_argument("-sign", help="print the signature of this digest")
flags = flags.parse_args()

KEY = "the key of the console"
SIGNER = 0x1234567890ABCDEF1234567890ABCDEF1234567890ABCDEF1234567890ABCDEF
PROJECT = "project-1"
CONTRACT = "0x00000000000000000000000000000000c0ffee00"
ASSETS = ["item_gold", "item_gem"]
ITEMS_PER_TOKEN = 2


def bug(name):
    return flags.fault == name


def rule(name):
    return name in flags.policy.split(",")


LARGEST = 16 << 10 if rule("body-limit") else 1 << 20


class Rejection(Exception):
    """An answer other than a success."""

    def __init__(self, code, status=0):
        super().__init__(code)
        self.code, self.status = code, status or (400 if rule("status-400") else 200)


# The database.

lock = threading.Lock()


@contextlib.contextmanager
def transaction():
    with lock, contextlib.closing(sqlite3.connect(flags.data, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")


def create():
    with contextlib.closing(sqlite3.connect(flags.data)) as db:
        db.executescript("""
            CREATE TABLE IF NOT EXISTS players (session TEXT PRIMARY KEY, token TEXT, wallet TEXT);
            CREATE TABLE IF NOT EXISTS balances (session TEXT, asset TEXT, amount TEXT, PRIMARY KEY (session, asset));
            CREATE TABLE IF NOT EXISTS orders (uuid TEXT PRIMARY KEY, session TEXT, digest TEXT, intent TEXT,
                mint INTEGER, assets TEXT, state TEXT, approved REAL);
        """)


def balance_of(db, session, asset):
    row = db.execute("SELECT amount FROM balances WHERE session = ? AND asset = ?", (session, asset)).fetchone()
    return None if row is None else number(row[0])


def set_balance(db, session, asset, amount):
    db.execute("UPDATE balances SET amount = ? WHERE session = ? AND asset = ?", (text(amount), session, asset))


def reserved(db, session, asset):
    """Return how much the open mints of a player will take."""
    if not rule("takes-at-result"):
        return 0
    rows = db.execute("SELECT assets FROM orders WHERE session = ? AND mint AND state = 'open'", (session,))
    return sum((number(json.loads(assets).get(asset, "0")) for assets, in rows), number("0"))


def move(db, session, assets, sign):
    """Add what an order is about to a player's balances, or take it from them."""
    for asset, amount in assets.items():
        balance = balance_of(db, session, asset)
        if balance is None and sign > 0 and bug("empty-balances-deleted"):
            continue
        if balance is None:
            raise Rejection("UNKNOWN_ASSET")
        after = balance + sign * amount
        unchecked = bug("no-balance-check") or bug("balance-checked-early") or bug("sum-unchecked")
        if bug("first-balance-compared") and balance_of(db, session, ASSETS[0]) >= amount:
            unchecked = True
        if sign < 0 and after < 0 and bug("balance-clamped"):
            after = number("0")
        if sign < 0 and after < reserved(db, session, asset) and not unchecked:
            raise Rejection("INVALID_BALANCE")
        set_balance(db, session, asset, after)
        if bug("empty-balances-deleted") and after == 0:
            db.execute("DELETE FROM balances WHERE session = ? AND asset = ?", (session, asset))


# Numbers.

decimal.getcontext().prec = 80


def number(digits):
    return float(digits) if flags.numbers == "doubles" else decimal.Decimal(digits)


def text(amount):
    if flags.numbers == "doubles":
        return str(int(amount)) if amount.is_integer() else repr(amount)
    return format(amount, "f")


def amount_of(entry):
    amount = entry.get("amount")
    if bug("missing-is-zero") and amount is None:
        amount = number("0")
    if not isinstance(amount, float if flags.numbers == "doubles" else decimal.Decimal):
        raise Rejection("INVALID_AMOUNT", 400)
    if flags.numbers == "doubles":
        fits = abs(amount) < 1e30  # not infinite
    else:
        fits = amount.is_finite() and amount.adjusted() < 30 and amount.as_tuple().exponent >= -18
    if not fits:
        raise Rejection("INVALID_AMOUNT", 400)
    if rule("whole") and amount != int(amount):
        raise Rejection("INVALID_AMOUNT")
    lenient = bug("zero-amounts") or bug("missing-is-zero")
    if not bug("negative-amounts") and (amount < 0 or amount == 0 and not lenient):
        raise Rejection("INVALID_AMOUNT")
    if bug("amounts-truncated"):
        amount = number(int(amount))
    return amount


# Reading.


def parse(body):
    def constant(name):
        raise ValueError(name)

    try:
        value = json.loads(body, parse_int=number, parse_float=number, parse_constant=constant)
    except (ValueError, RecursionError, decimal.DecimalException):
        raise Rejection("INVALID_JSON", 400)
    if not isinstance(value, dict):
        raise Rejection("INVALID_JSON", 400)
    return value


def field(parent, name, kind=str, form=None):
    value = parent.get(name)
    if not isinstance(value, kind) or form and not re.fullmatch(form, value):
        raise Rejection("INVALID_" + name.upper(), 400)
    return value


def uuid_of(body):
    try:
        id = uuid.UUID(field(body, "uuid"))
    except ValueError:
        raise Rejection("INVALID_UUID", 400)
    if id.int == 0 or rule("strict") and str(id) != body["uuid"]:
        raise Rejection("INVALID_UUID", 400)
    return str(id)[:32] if bug("uuid-cut") else str(id)


def read_intent(intent):
    """Return whether it is a mint, and its assets by ID."""
    method, kind = field(intent, "method"), field(intent, "type")
    if method == "mint" and kind == "assemble":
        mint = True
    elif method in ("burn", "burn-permit") and kind == "disassemble":
        mint = False
    else:
        raise Rejection("INVALID_METHOD", 400)
    items = entries(intent, "from" if mint else "to", ["asset"])
    tokens = entries(intent, "to" if mint else "from", ["erc20", "nft"])
    if rule("price"):
        check_terms(items, tokens)
    assets = {}
    for id, amount in items[:1] if bug("first-entry-only") else items:
        assets[id] = assets.get(id, number("0")) + amount
    return mint != bug("mint-burn-confused"), assets, items


def entries(intent, side, kinds):
    found = []
    for entry in field(intent, side, list):
        if not isinstance(entry, dict) or field(entry, "type").lower() not in kinds:
            raise Rejection("INVALID_TYPE", 400)
        found.append((field(entry, "id", form=".+"), amount_of(entry)))
    if not found:
        raise Rejection("INVALID_" + side.upper(), 400)
    return found


def check_terms(items, tokens):
    """Check that the tokens are the game's, and worth the items."""
    if len(tokens) != 1 and not bug("double-outputs"):
        raise Rejection("INVALID_MESSAGE")
    for contract, _ in tokens:
        if contract.lower() != CONTRACT and not bug("ignores-contract"):
            raise Rejection("INVALID_MESSAGE")
    worth = sum(amount for _, amount in items)
    if tokens[0][1] * ITEMS_PER_TOKEN != worth:
        raise Rejection("INVALID_MESSAGE")


def succeeded(body):
    """Return what the receipt of a result says."""
    receipt = body.get("receipt")
    status = receipt.get("status") if isinstance(receipt, dict) else None
    if status is None:
        if bug("missing-status-pays"):
            return body["intent"]["type"] == "disassemble"
        if rule("missing-fails"):
            return False
        raise Rejection("NO_STATUS", 500)
    if rule("literal-status"):
        return status == "0x1"
    if not isinstance(status, str):
        return status is not True and status == 1
    return re.fullmatch("0x0*1", status) is not None


# Who calls.


def mac(key, body):
    return hmac.new(key.encode(), body, hashlib.sha256).hexdigest()


def check_hmac(call, endpoint):
    if bug("no-hmac") or bug("no-hmac-at-result") and endpoint == "result":
        return
    body = call.body
    if bug("hmac-reencoded"):
        with contextlib.suppress(ValueError):
            body = json.dumps(json.loads(body), separators=(",", ":")).encode()
    if bug("hmac-after-body"):
        body = b""
    given, right = call.header("x-hmac-signature"), mac(KEY, body)
    if bug("empty-hmac-accepted") and not given:
        return
    if not hmac.compare_digest(right.encode(), given.lower().encode()):
        raise Rejection("INVALID_HMAC: want " + right if bug("hmac-echoed") else "INVALID_HMAC", 401)


def authenticate(call):
    """Return the session of the caller."""
    scheme, _, token = call.header("x-dapp-authorization").partition(" ")
    session = call.header("x-dapp-sessionid")
    if rule("digits"):
        if not re.fullmatch(r"\s*[0-9]+\s*", session):
            raise Rejection("INVALID_SESSION", 401)
        session = str(int(session))
    with transaction() as db:
        row = db.execute("SELECT token FROM players WHERE session = ?", (session,)).fetchone()
        anyone = db.execute("SELECT 1 FROM players WHERE token = ?", (token,)).fetchone()
    if row is None:
        raise Rejection("INVALID_SESSION", 401)
    right = scheme == "Bearer" and hmac.compare_digest(row[0].encode(), token.encode())
    if bug("no-token") or bug("token-of-anyone") and anyone:
        right = True
    if not right:
        raise Rejection("INVALID_TOKEN", 401)
    return session


def session_in(body):
    session = body.get("session_id")
    if rule("digits"):
        session = session and str(int(session))
    return session


# The endpoints.


def login(call):
    player = field(parse(call.body), "player")
    session = str(secrets.randbelow(10**12) + 10**12) if rule("digits") else "session-of-" + player
    token = secrets.token_urlsafe(24)
    with transaction() as db:
        db.execute("INSERT INTO players VALUES (?, ?, ?)", (session, token, "0x" + hashlib.sha256(player.encode()).hexdigest()[:40]))
        for asset in ASSETS[:1] if rule("one-asset") else ASSETS:
            db.execute("INSERT INTO balances VALUES (?, ?, '1000')", (session, asset))
    return {"sessionId": session, "accessToken": token}


def assets(call):
    session = authenticate(call)
    with transaction() as db:
        wallet, = db.execute("SELECT wallet FROM players WHERE session = ?", (session,)).fetchone()
        held = db.execute("SELECT asset, amount FROM balances WHERE session = ? ORDER BY rowid", (session,)).fetchall()
    if rule("regenerates"):
        held.append(("item_energy", str(int(time.time() * 20))))
    shown = [{"id": id, "balance": float(amount) if bug("balances-as-numbers") else amount} for id, amount in held]
    v1 = {"player_id": "player of " + session, "assets": shown}
    if rule("wallet"):
        v1["wallet_address"] = wallet
    return success({"v1": v1})


latest = {}  # what the latest call was about
locks = collections.defaultdict(threading.Lock)
busy = threading.Lock()


def validate(call):
    check_hmac(call, "validate")
    body = parse(call.body)
    if "receipt" in body:  # a result comes again once the console is right
        raise Rejection("RESULT_AT_VALIDATE", 500)
    session = authenticate(call)
    if bug("session-shared"):
        latest["session"] = session
        time.sleep(0.005)
        session = latest["session"]
    id = uuid_of(body)
    digest = field(body, "digest", form="0x[0-9a-fA-F]{64}")
    address = field(body, "user_address", form="0x[0-9a-fA-F]{40}")
    field(body, "user_sig", form="(0x)?[0-9a-fA-F]+")
    if field(body, "project_id") != PROJECT:
        raise Rejection("INVALID_PROJECT", 400)
    intent = field(body, "intent", dict)
    try:
        mint, moved, items = read_intent(intent)
    except Rejection as rejection:
        if bug("rejected-orders-kept") and rejection.code == "INVALID_MESSAGE":
            keep(session, id, digest, intent)
        raise
    call.approval = {"userSig": body["user_sig"], "validatorSig": signature(bytes.fromhex(digest[2:]))}
    if bug("user-sig-replaced"):
        call.approval["userSig"] = call.approval["validatorSig"]
    if mint and bug("balance-checked-early"):
        with transaction() as db:
            check_each(db, session, moved.items())
        time.sleep(0.02)
    with contextlib.ExitStack() as held:
        if bug("assets-locked-as-listed"):
            for asset in moved:
                held.enter_context(locks[session, asset])
                time.sleep(0.005)
        db = held.enter_context(transaction())
        if mint and bug("sum-unchecked"):
            check_each(db, session, items)
        approve(db, session, id, digest, address, intent, mint, moved)
    return success(call.approval)


def keep(session, id, digest, intent):
    """Store an order that is rejected for its terms."""
    mint = intent["type"] == "assemble"
    kept = {entry["id"]: text(entry["amount"]) for entry in intent["from" if mint else "to"]}
    with transaction() as db:
        db.execute("INSERT OR IGNORE INTO orders VALUES (?, ?, ?, ?, ?, ?, 'open', ?)",
                   (id, session, digest.lower(), plain(intent), mint, json.dumps(kept), time.time()))


def check_each(db, session, items):
    """Check that the player owns each of some amounts, which may not mean all of them."""
    for asset, amount in items:
        if (balance_of(db, session, asset) or 0) < amount:
            raise Rejection("INVALID_BALANCE")


def approve(db, session, id, digest, address, intent, mint, moved):
    """Take what an order costs and store it, in the caller's transaction."""
    if rule("wallet"):
        wallet, = db.execute("SELECT wallet FROM players WHERE session = ?", (session,)).fetchone()
        if address.lower() != wallet:
            raise Rejection("INVALID_USER")
    known = db.execute("SELECT session, digest, intent, state FROM orders WHERE uuid = ?", (id,)).fetchone()
    if known:
        if known != (session, digest.lower(), plain(intent), "open") or rule("no-repeats"):
            raise Rejection("KNOWN_ORDER")
        if bug("takes-again") and mint:
            move(db, session, moved, -1)
        return
    if rule("one-order") and db.execute("SELECT 1 FROM orders WHERE session = ? AND state = 'open'", (session,)).fetchone():
        raise Rejection("ORDER_OPEN", 400)
    if rule("cooldown") and db.execute("SELECT 1 FROM orders WHERE session = ? AND approved > ?", (session, time.time() - 1)).fetchone():
        raise Rejection("COOLDOWN", 400)
    if not mint and any(balance_of(db, session, asset) is None for asset in moved):
        raise Rejection("UNKNOWN_ASSET")
    if mint and rule("takes-at-result"):
        for asset, amount in moved.items():
            if (balance_of(db, session, asset) or number("0")) - reserved(db, session, asset) < amount:
                raise Rejection("INVALID_BALANCE")
    elif mint:
        move(db, session, moved, -1)
        if bug("never-takes"):
            move(db, session, moved, +1)
    if not mint and (bug("grants-at-validate") or bug("grants-early")):
        move(db, session, moved, +1)
    db.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, 'open', ?)", (id, session, digest.lower(), plain(intent), mint,
               json.dumps({asset: text(amount) for asset, amount in moved.items()}), time.time()))


def plain(intent):
    """Return an intent as text that is the same for the same intent."""
    return json.dumps(intent, sort_keys=True, default=str)


delivered = []  # what some faults remember


def result(call):
    check_hmac(call, "result")
    body = parse(call.body)
    if rule("token-at-result"):
        authenticate(call)
    id, good = uuid_of(body), succeeded(body)
    with transaction() as db:
        known = db.execute("SELECT session, intent, mint, assets, state FROM orders WHERE uuid = ?", (id,)).fetchone()
        if known is None:
            if not bug("unknown-order-pays"):
                raise Rejection("UNKNOWN_ORDER", 500)
            mint, moved, _ = read_intent(body["intent"])
            if mint != good:
                move(db, body["session_id"], moved, +1)
            return success(None)
        if bug("latest-order-ended"):
            latest = db.execute("""SELECT uuid, session, intent, mint, assets, state FROM orders
                WHERE session = ? AND mint = ? AND state = 'open' ORDER BY rowid DESC""", (known[0], known[2])).fetchone()
            if latest:
                id, *known = latest
        session, intent, mint, stored, state = known
        if bug("type-7-is-failure") and mint and body["receipt"].get("type") == "0x7":
            good = False
        moved = {asset: number(amount) for asset, amount in json.loads(stored).items()}
        if rule("strict") or rule("digits"):
            if session_in(body) != session:
                raise Rejection("INVALID_SESSION", 400)
        if rule("strict"):
            told = {name: value for name, value in field(body, "intent", dict).items() if name not in ("fee_rate", "actual")}
            if plain(told) != intent or not re.fullmatch("0x[0-9a-f]{64}", field(body, "tx_hash")):
                raise Rejection("INVALID_INTENT", 400)
        if bug("amounts-of-result"):
            _, moved, _ = read_intent(body["intent"])
        if bug("fee-kept") and not good:
            fee = body["intent"].get("fee_rate", number("0"))
            moved = {asset: amount - amount * fee // 10000 for asset, amount in moved.items()}
        now = "succeeded" if good else "failed"
        again = bug("gives-back-again") and mint or bug("grants-again") and not mint
        if state not in ("open", now):
            raise Rejection("OTHER_OUTCOME", 400)
        if bug("repeats-by-transaction"):
            again = (id, body.get("tx_hash")) not in delivered
            delivered.append((id, body.get("tx_hash")))
        if bug("repeats-forgotten"):
            again = id not in delivered
            delivered.append(id)
            del delivered[:-50]
        db.execute("UPDATE orders SET state = ? WHERE uuid = ?", (now, id))
        if state == "open" or again:
            settle(db, session, moved, mint, good)
    return success(None)


def settle(db, session, moved, mint, good):
    """Move what the outcome of an order moves."""
    if mint:
        if rule("takes-at-result"):
            sign = -1 if good else 0
        else:
            sign = 0 if good else +1
        if bug("never-gives-back"):
            sign = 0
        if bug("gives-back-on-success"):
            sign = +1
    else:
        sign = +1 if good else 0
        if bug("never-grants") or bug("grants-at-validate"):
            sign = 0
        if bug("grants-on-failure"):
            sign = +1
        if bug("grants-early"):
            sign = 0 if good else -1
    if sign > 0 and rule("late"):
        threading.Timer(0.1, lambda: settle_later(session, moved, sign)).start()
    elif sign:
        move(db, session, moved, sign)


def settle_later(session, moved, sign):
    with transaction() as db:
        move(db, session, moved, sign)


def signature(digest):
    key = SIGNER + 1 if bug("wrong-key") else SIGNER
    if bug("wrong-digest"):
        digest = hashlib.sha256(digest).digest()
    signed = bytearray(secp256k1.sign(key, digest, high=bug("high-s")))
    if bug("v-0-1"):
        signed[64] -= 27
    return "0x" + signed.hex()


def success(data):
    return {"success": True, "errorCode": None, "data": data}


# HTTP.


class Call:
    def __init__(self, method, path, header, body):
        self.method, self.path, self.header, self.body, self.approval = method, path, header, body, None


calls = {"all": 0, "second": 0, "in it": 0, "logins in it": 0}


def limit(what, most):
    """Answer 429 to more than so many calls in a second."""
    with lock:
        if calls["second"] != int(time.time()):
            calls.update({"second": int(time.time()), "in it": 0, "logins in it": 0})
        calls[what] += 1
        if calls[what] > most:
            raise Rejection("TOO_MANY_CALLS", 429)


def answer(call):
    """Return the status, the content type and the body of the answer to a call."""
    endpoint = {"/login": login, "/api/assets": assets, "/api/validate": validate, "/api/result": result}.get(call.path)
    if bug("not-found") and call.path == "/api/validate":
        endpoint = None
    calls["all"] += 1
    if bug("dies") and calls["all"] > 300:
        os._exit(1)
    waits = bug("lock-timeout") and endpoint in (validate, result)
    if waits and not busy.acquire(timeout=0.02):
        return 400, "application/json", b'{"success": false, "errorCode": "LOCK_TIMEOUT", "data": null}'
    try:
        time.sleep(0.01 if waits else 0)
        if endpoint is None:
            return 404, "text/html", b"<!doctype html><title>404 Not Found</title><h1>Not Found</h1>"
        if call.method != ("GET" if endpoint is assets else "POST"):
            raise Rejection("METHOD_NOT_ALLOWED", 405)
        if endpoint is login:
            if rule("login-limit"):
                limit("logins in it", 5)
        else:
            if rule("call-limit"):
                limit("in it", 100)
            if rule("latency"):
                time.sleep(0.3)
        if call.body is None:
            raise Rejection("BODY_TOO_LARGE", 500 if endpoint is result else 413)  # a result comes again after 500 only
        status, value = 200, endpoint(call)
        if endpoint is result:
            if bug("confirms-with-201"):
                status = 201
            if bug("confirms-with-text"):
                return 200, "text/plain", b"OK"
            if bug("confirms-with-false"):
                value["success"] = False
    except Rejection as rejection:
        status, value = rejection.status, {"success": False, "errorCode": rejection.code, "data": None}
        if bug("success-in-rejections"):
            status, value["success"] = 200, True
        if bug("signed-rejection"):
            value["data"] = call.approval
        if bug("html-rejections") and endpoint is not login:
            return max(status, 400), "text/html", b"<!doctype html><title>Bad Request</title><h1>Bad Request</h1>"
    except Exception:
        status, value = 500, {"success": False, "errorCode": "INTERNAL", "data": None}
        if os.environ.get("VERBOSE"):
            sys.excepthook(*sys.exc_info())
    finally:
        if waits:
            busy.release()
    return status, "application/json", json.dumps(value).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    wbufsize = -1  # write an answer at once, or the client's delayed ACK holds up its second half
    protocol_version = "HTTP/1.0" if flags.http == "single" or rule("closes") else "HTTP/1.1"

    def read(self):
        """Return the body, or None if it is too large."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
                if len(body) > LARGEST:
                    return None
            self.rfile.readline()
            return body
        length = int(self.headers.get("content-length", 0))
        if length > LARGEST:
            return None
        body = self.rfile.read(length)
        return body if len(body) == length else None

    def header(self, name):
        """Return a header; two of the same name are none."""
        values = self.headers.get_all(name, [])
        return values[0] if len(values) == 1 else ""

    def handle_one(self):
        body = self.read()
        status, kind, value = answer(Call(self.command, self.path.partition("?")[0], self.header, body))
        if body is None:
            self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(value)))
        if status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(value)

    do_GET = do_POST = do_PUT = do_DELETE = handle_one

    def log_message(self, *_):
        pass


def application(environ, start_response):
    """The same server as a WSGI application."""
    length = environ.get("CONTENT_LENGTH")
    if environ.get("HTTP_TRANSFER_ENCODING"):
        start_response("411 Length Required", [("Content-Type", "text/plain")])
        return [b"Length Required"]
    body = b""
    if length:
        body = environ["wsgi.input"].read(int(length)) if int(length) <= LARGEST else None
        if body is not None and len(body) < int(length):
            body = None

    def header(name):
        return environ.get("HTTP_" + name.upper().replace("-", "_"), "")

    status, kind, value = answer(Call(environ["REQUEST_METHOD"], environ["PATH_INFO"], header, body))
    start_response(f"{status} {http.HTTPStatus(status).phrase}", [("Content-Type", kind), ("Content-Length", str(len(value)))] +
                   ([("Retry-After", "1")] if status == 429 else []))
    return [value]


class WSGIHandler(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


class WSGIServer(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 128


class Server(http.server.HTTPServer):
    request_queue_size = 128

    def handle_error(self, *_):
        pass


class ThreadingServer(socketserver.ThreadingMixIn, Server):
    daemon_threads = True


def main():
    source = open(__file__, encoding="utf-8").read()
    faults, policies = (sorted(set(re.findall(name + r'\("([a-z0-9-]+)"\)', source))) for name in ("bug", "rule"))
    if flags.list:
        print(*faults, sep="\n")
        return
    if flags.sign:
        print(signature(bytes.fromhex(flags.sign[2:])))
        return
    for name in [flags.fault] * bool(flags.fault) + flags.policy.split(",") * bool(flags.policy):
        if name not in faults + policies:
            sys.exit("no such fault or policy: " + name)
    create()
    address = ("127.0.0.1", flags.port)
    if flags.http == "wsgi":
        server = WSGIServer(address, WSGIHandler)
        server.set_app(application)
    else:
        server = (ThreadingServer if flags.http == "threads" else Server)(address, Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


main()
