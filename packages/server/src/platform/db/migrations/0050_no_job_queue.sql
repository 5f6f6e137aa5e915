-- Recurring tasks are leased, as everything is that one process does at a time; nothing is queued any more. A new wallet is due for screening when
-- it is made, so what stood in the queue is done all the same.

drop table jobs;
