-- +goose Up

ALTER TABLE service ADD COLUMN mode TEXT NOT NULL DEFAULT 'http';
ALTER TABLE service ADD COLUMN port BIGINT NOT NULL DEFAULT 0;
CREATE INDEX service_port ON service (port) WHERE port <> 0;
-- What an upstream's health check was until now.
ALTER TABLE upstream ADD COLUMN hc_type TEXT NOT NULL DEFAULT 'http';
