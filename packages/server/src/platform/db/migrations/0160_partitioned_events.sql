-- Events are partitioned by time: their ids begin with it, so that the key is the id alone. The table of before becomes the first partition as it
-- is, without a scan; `keepPartitions` then closes it at the end of a month. No key refers to a partitioned table, which would block the
-- detaching of a month: the sweep deletes deliveries and resends by their age.
alter table webhook_deliveries drop constraint webhook_deliveries_event_id_fkey;
alter table event_resends drop constraint event_resends_event_id_fkey;
alter table events rename to events_first;
alter index events_pkey rename to events_first_pkey;
alter index events_by_tenant rename to events_first_by_tenant;
alter index events_by_age rename to events_first_by_age;
alter index events_as_written rename to events_first_as_written;
alter index events_by_type rename to events_first_by_type;
create table events (like events_first including defaults including constraints including storage) partition by range (id);
alter table events add constraint events_pkey primary key (id);
create index events_by_tenant on events (organisation_id, environment, id desc);
create index events_by_age on events (created_at);
create index events_as_written on events (organisation_id, environment, written_by, id);
create index events_by_type on events (organisation_id, environment, type, id);
alter table events attach partition events_first for values from (minvalue) to (maxvalue);
