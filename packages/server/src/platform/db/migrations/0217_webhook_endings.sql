-- Webhooks that are off and have more pending deliveries than one transaction ends: later transactions end the others.
create table webhook_endings (
  webhook_id text primary key references webhook_queues on delete cascade
);
