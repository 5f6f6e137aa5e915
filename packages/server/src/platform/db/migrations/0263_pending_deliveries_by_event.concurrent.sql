-- Whether a delivery of an old event is pending. A name with `{webhook_deliveries}` stands for one of each partition.
create index if not exists webhook_deliveries_pending on only webhook_deliveries (event_id) where status = 'pending';
create index concurrently if not exists {webhook_deliveries}_pending on {webhook_deliveries} (event_id) where status = 'pending';
alter index webhook_deliveries_pending attach partition {webhook_deliveries}_pending;
