-- +goose Up

-- Names are the identities: references go by name. Ids are never used again.
CREATE TABLE upstream (
    id                           INTEGER PRIMARY KEY AUTOINCREMENT,
    name                         TEXT NOT NULL UNIQUE,
    ip                           TEXT NOT NULL,
    port                         INTEGER NOT NULL,
    weight                       INTEGER NOT NULL,
    hc_path                      TEXT NOT NULL,
    hc_host                      TEXT NOT NULL,
    hc_interval_seconds          INTEGER NOT NULL,
    hc_timeout_seconds           INTEGER NOT NULL,
    hc_unhealthy_threshold_count INTEGER NOT NULL,
    hc_healthy_threshold_count   INTEGER NOT NULL,
    strategy                     TEXT NOT NULL,
    protocol                     TEXT NOT NULL,
    validation_ca_certificate    TEXT NOT NULL,
    validation_subject_name      TEXT NOT NULL,
    create_ts                    TIMESTAMP NOT NULL,
    update_ts                    TIMESTAMP NOT NULL
);

CREATE TABLE service (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL UNIQUE,
    fqdn      TEXT NOT NULL,
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL
);
CREATE INDEX service_fqdn ON service (lower(fqdn));

CREATE TABLE route (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    service   TEXT NOT NULL REFERENCES service (name),
    name      TEXT NOT NULL,
    prefix    TEXT NOT NULL,
    config    TEXT NOT NULL,
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL,
    UNIQUE (service, name)
);

CREATE TABLE proxy (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    http_port  INTEGER NOT NULL,
    https_port INTEGER NOT NULL,
    listen_ip  TEXT NOT NULL,
    create_ts  TIMESTAMP NOT NULL,
    update_ts  TIMESTAMP NOT NULL
);

CREATE TABLE route_upstream (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    service   TEXT NOT NULL,
    route     TEXT NOT NULL,
    upstream  TEXT NOT NULL REFERENCES upstream (name),
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL,
    UNIQUE (service, route, upstream),
    FOREIGN KEY (service, route) REFERENCES route (service, name)
);
CREATE INDEX route_upstream_upstream ON route_upstream (upstream);

CREATE TABLE proxy_service (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    proxy     TEXT NOT NULL REFERENCES proxy (name),
    service   TEXT NOT NULL REFERENCES service (name),
    create_ts TIMESTAMP NOT NULL,
    update_ts TIMESTAMP NOT NULL,
    UNIQUE (proxy, service)
);
CREATE INDEX proxy_service_service ON proxy_service (service);

-- One row: the number of the newest revision.
CREATE TABLE revision (
    revision INTEGER NOT NULL
);
INSERT INTO revision (revision) VALUES (0);

-- before and after are the object as JSON, null where there was or is none.
CREATE TABLE change_log (
    revision INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    actor    TEXT NOT NULL,
    at       TIMESTAMP NOT NULL,
    request  TEXT NOT NULL,
    kind     TEXT NOT NULL,
    name     TEXT NOT NULL,
    before   TEXT,
    after    TEXT,
    PRIMARY KEY (revision, seq)
) WITHOUT ROWID;
