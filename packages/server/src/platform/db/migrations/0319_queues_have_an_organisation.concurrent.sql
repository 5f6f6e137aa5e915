-- A queue without an organisation, which the data of an older dump can have, would stop the worker that leases it. Triggers do not run in such a restore; checks do.
-- Queues are locked in the order of their ids, as everywhere.
update webhook_queues set organisation_id = webhooks.organisation_id
from (select webhook_id from webhook_queues where organisation_id is null order by webhook_id for update) as nameless
join webhooks on webhooks.id = nameless.webhook_id
where webhook_queues.webhook_id = nameless.webhook_id;
alter table webhook_queues drop constraint if exists webhook_queues_organisation_check,
  add constraint webhook_queues_organisation_check check (organisation_id is not null) not valid;
alter table webhook_queues validate constraint webhook_queues_organisation_check;
