-- As 0160, for deliveries. They are written under the lock of their webhook's queue, and deleted before their webhook.
alter table webhook_deliveries drop constraint webhook_deliveries_webhook_id_fkey;
alter table webhook_deliveries rename to webhook_deliveries_first;
alter index webhook_deliveries_pkey rename to webhook_deliveries_first_pkey;
alter index webhook_deliveries_due rename to webhook_deliveries_first_due;
alter index webhook_deliveries_dead rename to webhook_deliveries_first_dead;
alter index webhook_deliveries_by_event rename to webhook_deliveries_first_by_event;
alter index webhook_deliveries_by_webhook rename to webhook_deliveries_first_by_webhook;
create table webhook_deliveries (like webhook_deliveries_first including defaults including constraints including storage) partition by range (id);
alter table webhook_deliveries add constraint webhook_deliveries_pkey primary key (id);
create index webhook_deliveries_due on webhook_deliveries (webhook_id, due_at) where status = 'pending';
create index webhook_deliveries_dead on webhook_deliveries (webhook_id, ended_at) where status = 'dead' and replayed_by is null;
create index webhook_deliveries_by_event on webhook_deliveries (event_id);
create index webhook_deliveries_by_webhook on webhook_deliveries (webhook_id);
alter table webhook_deliveries attach partition webhook_deliveries_first for values from (minvalue) to (maxvalue);
