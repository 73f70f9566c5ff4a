-- +goose Up

-- The defaults are those for objects that are there already.
ALTER TABLE service ADD COLUMN https TEXT NOT NULL DEFAULT 'both';
ALTER TABLE service ADD COLUMN hsts_seconds INTEGER NOT NULL DEFAULT 0;
ALTER TABLE service ADD COLUMN client_ca_certificate TEXT NOT NULL DEFAULT '';
ALTER TABLE proxy ADD COLUMN tls_min_version TEXT NOT NULL DEFAULT '1.2';
ALTER TABLE upstream ADD COLUMN tls_insecure INTEGER NOT NULL DEFAULT 0;
ALTER TABLE upstream ADD COLUMN client_certificate TEXT NOT NULL DEFAULT '';
