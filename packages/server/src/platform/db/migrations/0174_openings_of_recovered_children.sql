-- Openings of a child whose record was made anew after a restore: nobody screened what it has received. Until its balance is read, all of it is on
-- hold, so its raw_amount is more than any balance and is_read is false. Its block_number is -1, and then the block that the reading waits for.
alter table opening_amounts add column is_read boolean not null default true;
create index opening_amounts_to_read on opening_amounts (network) where not is_read;
