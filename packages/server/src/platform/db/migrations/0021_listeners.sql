-- Listeners: programs that read an organisation's events from a stream, signed as deliveries are.

-- The transaction that wrote the event. Those below the oldest one that still runs are all there, so that a reader which goes by it
-- and stops there misses no event, however late it was committed. What happened before there were listeners is told to none.
alter table events add column written_by xid8;
alter table events alter column written_by set default pg_current_xact_id();
create index events_as_written on events (organisation_id, environment, written_by, id);

-- An event that listeners are to be told once more.
create table event_resends (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  event_id text not null references events (id) on delete cascade,
  written_by xid8 not null default pg_current_xact_id(),
  created_at timestamptz not null
);
create index event_resends_as_written on event_resends (organisation_id, environment, written_by, id);
create index event_resends_by_event on event_resends (event_id);

-- What signs for the listeners of an API key.
create table listener_secrets (
  api_key_id text primary key references api_keys (id) on delete cascade,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  -- The text as shown (whsec_…), sealed.
  secret bytea not null,
  created_at timestamptz not null
);
