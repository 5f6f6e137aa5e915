-- A sweep finds the deliveries of a webhook that was deleted, and the database those to which a deleted row leads. Attempts are swept in the
-- order of their ids, which sort by time.
create index concurrently if not exists webhook_deliveries_by_webhook on webhook_deliveries (webhook_id);
create index concurrently if not exists webhooks_deleted on webhooks (deleted_at) where deleted_at is not null;
drop index concurrently if exists webhook_attempts_by_age;
