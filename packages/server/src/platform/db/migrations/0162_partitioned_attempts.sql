-- As 0160, for attempts.
alter table webhook_attempts rename to webhook_attempts_first;
alter index webhook_attempts_pkey rename to webhook_attempts_first_pkey;
alter index webhook_attempts_by_webhook rename to webhook_attempts_first_by_webhook;
alter index webhook_attempts_by_status rename to webhook_attempts_first_by_status;
create table webhook_attempts (like webhook_attempts_first including defaults including constraints including storage) partition by range (id);
alter table webhook_attempts add constraint webhook_attempts_pkey primary key (id);
create index webhook_attempts_by_webhook on webhook_attempts (webhook_id, id desc);
create index webhook_attempts_by_status on webhook_attempts (webhook_id, status, id);
alter table webhook_attempts attach partition webhook_attempts_first for values from (minvalue) to (maxvalue);
