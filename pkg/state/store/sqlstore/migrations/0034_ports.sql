-- +goose Up

-- The ports of a proxy for requests that routes distinguish, as JSON; only Gateways of Kubernetes have any.
ALTER TABLE proxy ADD COLUMN ports TEXT NOT NULL DEFAULT '';
