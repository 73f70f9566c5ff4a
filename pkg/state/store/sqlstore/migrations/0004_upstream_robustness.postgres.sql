-- +goose Up

-- The defaults are those for upstreams that are there already.
ALTER TABLE upstream ADD COLUMN connect_timeout_seconds BIGINT NOT NULL DEFAULT 5;
ALTER TABLE upstream ADD COLUMN idle_timeout_seconds BIGINT NOT NULL DEFAULT 4;
ALTER TABLE upstream ADD COLUMN keepalive_interval_seconds BIGINT NOT NULL DEFAULT 30;
ALTER TABLE upstream ADD COLUMN max_connections BIGINT NOT NULL DEFAULT 4096;
ALTER TABLE upstream ADD COLUMN max_pending BIGINT NOT NULL DEFAULT 4096;
ALTER TABLE upstream ADD COLUMN max_requests BIGINT NOT NULL DEFAULT 4096;
ALTER TABLE upstream ADD COLUMN max_retries BIGINT NOT NULL DEFAULT 4096;
ALTER TABLE upstream ADD COLUMN outlier_threshold_count BIGINT NOT NULL DEFAULT 3;
ALTER TABLE upstream ADD COLUMN outlier_ejection_seconds BIGINT NOT NULL DEFAULT 3;
ALTER TABLE upstream ADD COLUMN panic_threshold_percent BIGINT NOT NULL DEFAULT 0;
