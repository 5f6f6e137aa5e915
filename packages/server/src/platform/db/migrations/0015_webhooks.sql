-- Webhooks: who is told of events, what is still to be delivered, and how each attempt went.

-- Set until the event's deliveries are written. What happened before there were webhooks is told to nobody.
alter table events add column fan_out_due boolean not null default false;
alter table events alter column fan_out_due set default true;
create index events_to_fan_out on events (id) where fan_out_due;
create index events_by_age on events (created_at);

create table webhooks (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  url text not null,
  -- Event types, or '*' for all.
  events text[] not null,
  is_active boolean not null default true,
  -- The first failed attempt since the last that succeeded.
  failing_since timestamptz,
  created_at timestamptz not null,
  deleted_at timestamptz
);
create index webhooks_by_tenant on webhooks (organisation_id, environment, id desc) where deleted_at is null;

create table webhook_secrets (
  webhook_id text not null references webhooks (id) on delete cascade,
  -- The order of making; the newest signs first.
  sequence bigint generated always as identity,
  -- The text as shown (whsec_…), sealed.
  secret bytea not null,
  -- Until when a secret that was replaced still signs. Null for the current one.
  retires_at timestamptz,
  primary key (webhook_id, sequence)
);

-- One row per webhook: whose turn it is. A process that holds the lease is the only one that delivers to the endpoint.
create table webhook_queues (
  webhook_id text primary key references webhooks (id) on delete cascade,
  -- When a process is to look at the endpoint: its next delivery is due, or the lease ends. Null: nothing waits.
  look_at timestamptz,
  lease text
) with (fillfactor = 50);
create index webhook_queues_due on webhook_queues (look_at) where look_at is not null;

create table webhook_deliveries (
  id text primary key,
  organisation_id text not null,
  environment text not null,
  webhook_id text not null references webhooks (id) on delete cascade,
  event_id text not null references events (id) on delete cascade,
  type text not null,
  status text not null check (status in ('pending', 'succeeded', 'dead')),
  -- Attempts made, and how far the delivery is in the schedule of retries: a second try at once is no step.
  attempts integer not null default 0,
  step integer not null default 0,
  -- When the next attempt is due. Null once ended.
  due_at timestamptz,
  ended_at timestamptz,
  -- The delivery that took this one's place.
  replayed_by text,
  created_at timestamptz not null,
  check ((status = 'pending') = (due_at is not null)),
  check ((status = 'pending') = (ended_at is null))
) with (fillfactor = 80);
create index webhook_deliveries_due on webhook_deliveries (webhook_id, due_at) where status = 'pending';
create index webhook_deliveries_dead on webhook_deliveries (webhook_id, ended_at) where status = 'dead' and replayed_by is null;
create index webhook_deliveries_by_event on webhook_deliveries (event_id);

create table webhook_attempts (
  id text primary key,
  organisation_id text not null,
  environment text not null,
  webhook_id text not null,
  delivery_id text not null,
  attempt integer not null,
  status text not null check (status in ('succeeded', 'failed')),
  response_status integer,
  -- The first kilobyte.
  response_body text,
  duration_ms integer not null,
  error text,
  next_attempt_at timestamptz,
  created_at timestamptz not null
);
create index webhook_attempts_by_webhook on webhook_attempts (webhook_id, id desc);
create index webhook_attempts_by_age on webhook_attempts using brin (created_at);
