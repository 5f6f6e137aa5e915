-- Whether a payment has a place in the month: false for a transaction of a payer that nodes refused or that no block includes, while the chain is read for it.
alter table payments add column has_place boolean not null default true;
