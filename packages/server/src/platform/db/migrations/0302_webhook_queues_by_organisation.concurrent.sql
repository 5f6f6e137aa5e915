-- Due webhook queues are listed in shares of their organisations. The trigger serves the previous version, which names no organisation.
alter table webhook_queues add column if not exists organisation_id text;
create or replace function name_queue_organisation() returns trigger language plpgsql as $$
begin
  new.organisation_id := coalesce(new.organisation_id, (select organisation_id from webhooks where id = new.webhook_id));
  return new;
end $$;
create or replace trigger name_organisation before insert on webhook_queues for each row execute function name_queue_organisation();
-- Queues are locked in the order of their ids, as everywhere.
do $$
declare
  done text := '';
  upto text;
begin
  loop
    select max(webhook_id) into upto from (select webhook_id from webhook_queues where webhook_id > done order by webhook_id limit 100) as part;
    exit when upto is null;
    perform from webhook_queues where webhook_id > done and webhook_id <= upto and organisation_id is null order by webhook_id for update;
    update webhook_queues set organisation_id = webhooks.organisation_id from webhooks
    where webhooks.id = webhook_id and webhook_id > done and webhook_id <= upto and webhook_queues.organisation_id is null;
    commit;
    done := upto;
  end loop;
end $$;
create index concurrently if not exists webhook_queues_due_by_organisation on webhook_queues (organisation_id, look_at) where look_at is not null;
