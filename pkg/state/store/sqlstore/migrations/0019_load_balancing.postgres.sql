-- +goose Up

-- The defaults are those for upstreams that are there already.
ALTER TABLE upstream ADD COLUMN priority BIGINT NOT NULL DEFAULT 0;
ALTER TABLE upstream ADD COLUMN zone TEXT NOT NULL DEFAULT '';
ALTER TABLE upstream ADD COLUMN zone_min_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE upstream ADD COLUMN slow_start_seconds BIGINT NOT NULL DEFAULT 0;
ALTER TABLE upstream ADD COLUMN dns TEXT NOT NULL DEFAULT 'strict';
ALTER TABLE upstream ADD COLUMN dns_family TEXT NOT NULL DEFAULT 'v4_preferred';
ALTER TABLE upstream ADD COLUMN dns_refresh_seconds BIGINT NOT NULL DEFAULT 5;
