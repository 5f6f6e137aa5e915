-- Events whose deliveries are not written yet. A row beside the event, so that fan-out does not rewrite the event and add to each of its
-- indexes. Events that no webhook subscribes to when they are written have none.
create table events_due (
  event_id text primary key
);
insert into events_due (event_id)
select e.id from events e
where e.fan_out_due and exists (
  select from webhooks w where w.organisation_id = e.organisation_id and w.environment = e.environment and w.deleted_at is null
    and (w.events @> array[e.type] or w.events @> array['*']));
drop index events_to_fan_out;
alter table events drop column fan_out_due;
