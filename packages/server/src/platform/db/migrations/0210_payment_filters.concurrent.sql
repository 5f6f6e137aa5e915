-- An index for each further filter of the list of payments. A name with `{payments}` stands for one of each partition.
create index if not exists payments_by_status on only payments (organisation_id, environment, status, log_id);
create index concurrently if not exists {payments}_by_status on {payments} (organisation_id, environment, status, log_id);
alter index payments_by_status attach partition {payments}_by_status;
create index if not exists payments_by_chain on only payments (organisation_id, environment, chain, log_id);
create index concurrently if not exists {payments}_by_chain on {payments} (organisation_id, environment, chain, log_id);
alter index payments_by_chain attach partition {payments}_by_chain;
create index if not exists payments_by_payer on only payments (organisation_id, environment, payer, log_id);
create index concurrently if not exists {payments}_by_payer on {payments} (organisation_id, environment, payer, log_id);
alter index payments_by_payer attach partition {payments}_by_payer;
