-- When the operator withdrew a leaked key of the service: it leaves the key set, so that nothing that it signed is accepted any more.
alter table sealed_keys add column if not exists withdrawn_at timestamptz;
