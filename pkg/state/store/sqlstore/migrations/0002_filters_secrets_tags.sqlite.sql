-- +goose Up

-- Tags stand between spaces, with one at each end.
ALTER TABLE upstream ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE service ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE route ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE proxy ADD COLUMN tags TEXT NOT NULL DEFAULT '';

CREATE TABLE filter (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL UNIQUE,
    type      TEXT NOT NULL,
    config    TEXT NOT NULL,
    tags      TEXT NOT NULL,
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL
);

CREATE TABLE globalconfig (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL UNIQUE,
    type      TEXT NOT NULL,
    config    TEXT NOT NULL,
    tags      TEXT NOT NULL,
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL
);

-- private_key and value are sealed.
CREATE TABLE secret (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL UNIQUE,
    type        TEXT NOT NULL,
    sni         TEXT NOT NULL,
    cert        TEXT NOT NULL,
    private_key TEXT NOT NULL,
    value       TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    subject     TEXT NOT NULL,
    not_after   TIMESTAMP,
    tags        TEXT NOT NULL,
    create_ts   TIMESTAMP NOT NULL,
    update_ts   TIMESTAMP NOT NULL
);

CREATE TABLE route_filter (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    service   TEXT NOT NULL,
    route     TEXT NOT NULL,
    filter    TEXT NOT NULL REFERENCES filter (name),
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL,
    UNIQUE (service, route, filter),
    FOREIGN KEY (service, route) REFERENCES route (service, name)
);
CREATE INDEX route_filter_filter ON route_filter (filter);

CREATE TABLE service_filter (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    service   TEXT NOT NULL REFERENCES service (name),
    filter    TEXT NOT NULL REFERENCES filter (name),
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL,
    UNIQUE (service, filter)
);
CREATE INDEX service_filter_filter ON service_filter (filter);

CREATE TABLE service_secret (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    service   TEXT NOT NULL REFERENCES service (name),
    secret    TEXT NOT NULL REFERENCES secret (name),
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL,
    UNIQUE (service, secret)
);
CREATE INDEX service_secret_secret ON service_secret (secret);

CREATE TABLE proxy_globalconfig (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    proxy        TEXT NOT NULL REFERENCES proxy (name),
    globalconfig TEXT NOT NULL REFERENCES globalconfig (name),
    create_ts    TIMESTAMP NOT NULL,
    update_ts    TIMESTAMP NOT NULL,
    UNIQUE (proxy, globalconfig)
);
CREATE INDEX proxy_globalconfig_globalconfig ON proxy_globalconfig (globalconfig);

-- Which objects a field of an object names; links have columns for it.
CREATE TABLE reference (
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    to_kind TEXT NOT NULL,
    to_name TEXT NOT NULL,
    PRIMARY KEY (kind, name, to_kind, to_name)
);
CREATE INDEX reference_to ON reference (to_kind, to_name);

-- One row: a known text, sealed with the key of the secrets.
CREATE TABLE seal_check (
    id     INTEGER PRIMARY KEY,
    sealed TEXT NOT NULL
);
