-- Events whose deliveries are written a few at a time, by tenant: those of many webhooks, and those that follow them. Webhooks up to the id in
-- `after` have theirs.
create table events_postponed (
  organisation_id text not null,
  environment text not null,
  event_id text not null,
  after text not null default '',
  primary key (organisation_id, environment, event_id)
);
