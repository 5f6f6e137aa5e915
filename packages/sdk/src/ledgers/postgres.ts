import { must, mustKnow, mustOptions } from '../check.ts'
import { dollars, exceededLimit } from '../pay/budget.ts'
import type { Ledger, LedgerEntry, ReservationRequest, ReservationVerdict } from '../pay/ledger.ts'
import { releasedError } from '../pay/memory-ledger.ts'

/** A connection or a pool of `pg`, or anything else with this function. It must not be inside a transaction. */
export interface LedgerDatabase {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** The tables of `postgresLedger`, as statements to run once, or at each start. */
export const postgresLedgerTables = `
SELECT pg_advisory_xact_lock(7881726500001);
CREATE TABLE IF NOT EXISTS purser_budget_days (
  budget text NOT NULL,
  day date NOT NULL,
  spent_usd numeric NOT NULL,
  host_usd jsonb NOT NULL,
  PRIMARY KEY (budget, day)
);
CREATE TABLE IF NOT EXISTS purser_budget_payments (
  id text NOT NULL,
  budget text NOT NULL,
  purchase text NOT NULL,
  day date NOT NULL,
  host text NOT NULL,
  amount_usd numeric NOT NULL,
  state text NOT NULL CHECK (state IN ('reserved', 'signed', 'spent')),
  payment jsonb NOT NULL,
  credential jsonb,
  reserved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (budget, id),
  UNIQUE (budget, purchase)
);
CREATE INDEX IF NOT EXISTS purser_budget_payments_unfinished
  ON purser_budget_payments (budget, reserved_at) WHERE state <> 'spent';
`

/** One statement: the row of the day is locked while its sums are compared and raised and the payment is inserted. */
const reserveText = `
WITH counted AS (
  INSERT INTO purser_budget_days AS known (budget, day, spent_usd, host_usd)
  SELECT $1, $4::date, $6::numeric, jsonb_build_object($5::text, $6::numeric)
  WHERE $6::numeric <= coalesce($8::numeric, 'infinity') AND $6::numeric <= coalesce($9::numeric, 'infinity')
  ON CONFLICT (budget, day) DO UPDATE SET
    spent_usd = known.spent_usd + $6::numeric,
    host_usd = known.host_usd
      || jsonb_build_object($5::text, coalesce((known.host_usd ->> $5)::numeric, 0) + $6::numeric)
  WHERE known.spent_usd + $6::numeric <= coalesce($8::numeric, 'infinity')
    AND coalesce((known.host_usd ->> $5)::numeric, 0) + $6::numeric <= coalesce($9::numeric, 'infinity')
  RETURNING 1
)
INSERT INTO purser_budget_payments (budget, id, purchase, day, host, amount_usd, state, payment)
SELECT $1, $2, $3, $4::date, $5, $6::numeric, 'reserved', $7::jsonb FROM counted
RETURNING id`

const spentText = `
SELECT spent_usd::text AS total, coalesce(host_usd ->> $3, '0') AS host_total
FROM purser_budget_days WHERE budget = $1 AND day = $2::date`

const signedText = `
UPDATE purser_budget_payments SET state = 'signed', credential = $3::jsonb
WHERE budget = $1 AND id = $2 AND state = 'reserved' RETURNING id`

const deliveredText = `
UPDATE purser_budget_payments SET state = 'spent' WHERE budget = $1 AND id = $2 AND state = 'signed'`

/** The row of the day is locked first, as by `reserve`, so that the two cannot wait for each other. */
const releaseText = `
WITH locked AS (
  SELECT days.budget, days.day, payments.id
  FROM purser_budget_days days JOIN purser_budget_payments payments USING (budget, day)
  WHERE payments.budget = $1 AND payments.id = $2 AND payments.state <> 'spent'
  FOR UPDATE OF days
), released AS (
  DELETE FROM purser_budget_payments payments USING locked
  WHERE payments.budget = locked.budget AND payments.id = locked.id AND payments.state <> 'spent'
  RETURNING payments.budget, payments.day, payments.host, payments.amount_usd
)
UPDATE purser_budget_days days SET
  spent_usd = days.spent_usd - released.amount_usd,
  host_usd = days.host_usd
    || jsonb_build_object(released.host, (days.host_usd ->> released.host)::numeric - released.amount_usd)
FROM released WHERE days.budget = released.budget AND days.day = released.day`

/** SQLSTATE of a duplicate purchase or id. */
const uniqueViolation = '23505'

/**
 * The earlier payment that prevents a reservation may be released before it is read. The reservation is then attempted
 * again.
 */
const attemptsMax = 5

const entryColumns = 'id, purchase, day::text, state, payment::text, credential::text'

const findText = `SELECT ${entryColumns} FROM purser_budget_payments WHERE budget = $1 AND purchase = $2`

const unfinishedText = `
SELECT ${entryColumns} FROM purser_budget_payments WHERE budget = $1 AND state <> 'spent' ORDER BY reserved_at, id`

/**
 * Returns a ledger in PostgreSQL, for processes on any number of machines: those that name one budget share it. Run
 * `postgresLedgerTables` first. It needs PostgreSQL 14 or newer. The rows contain credentials.
 *
 * @example
 * import { type LedgerDatabase, postgresLedger } from '@purser/sdk/ledgers'
 * import { createPayingFetch, type Signer } from '@purser/sdk/pay'
 *
 * export function agentFetch(signer: Signer, pool: LedgerDatabase) {
 *   const ledger = postgresLedger({ database: pool, budget: 'research-agent' })
 *   return createPayingFetch({ signer, ledger, limits: { perCall: '0.05', perDay: '5' } })
 * }
 */
export function postgresLedger(options: { readonly database: LedgerDatabase; readonly budget: string }): Ledger {
  const { database, budget } = checked(options)
  const rowsOf = async (text: string, ...values: unknown[]) => (await database.query(text, [budget, ...values])).rows
  const find = async (purchase: string) => {
    const [row] = await rowsOf(findText, purchase)
    return row === undefined ? undefined : entryOf(row)
  }
  /** Returns no row if the purchase already has a payment or a limit would be exceeded. */
  const insert = (request: ReservationRequest) =>
    rowsOf(reserveText, ...reserveValues(request)).catch((error: unknown) => {
      if (error instanceof Error && Reflect.get(error, 'code') === uniqueViolation) return []
      throw error
    })
  return {
    reserve: async (request) => {
      for (let attempt = 0; attempt < attemptsMax; attempt++) {
        if ((await insert(request)).length > 0) return { ok: true }
        const earlier = await find(request.purchase)
        if (earlier !== undefined) return { ok: false, earlier }
        const [spent] = await rowsOf(spentText, request.day, request.payment.host)
        const exceeded = exceededNow(request, spent)
        if (exceeded !== undefined) return exceeded
      }
      throw new Error(`The budget ${budget} changed during each of ${attemptsMax} attempts to reserve a payment.`)
    },
    signed: async (id, credential) => {
      if ((await rowsOf(signedText, id, JSON.stringify(credential))).length === 0) throw releasedError(id)
    },
    spent: async (id) => {
      await rowsOf(deliveredText, id)
    },
    release: async (id) => {
      await rowsOf(releaseText, id)
    },
    find,
    unfinished: async () => (await rowsOf(unfinishedText)).map(entryOf),
  }
}

function checked(options: Parameters<typeof postgresLedger>[0]): Parameters<typeof postgresLedger>[0] {
  mustKnow(options, { database: true, budget: true })
  const { database, budget } = options
  mustOptions(database, 'database')
  must(typeof database.query === 'function', 'database.query', database.query, 'Give a pool of pg.')
  must(typeof budget === 'string' && budget !== '', 'budget', budget, 'Give a name, such as "research-agent".')
  return { database, budget }
}

function reserveValues({ id, purchase, day, payment, limits }: ReservationRequest): unknown[] {
  const { perDay = null, perHostPerDay = null } = limits
  return [id, purchase, day, payment.host, payment.amountUsd, JSON.stringify(payment), perDay, perHostPerDay]
}

/** Returns the limit that a reservation would exceed by what is spent now; undefined if there is none. */
function exceededNow({ payment, limits }: ReservationRequest, row: unknown): ReservationVerdict | undefined {
  const { total = '0', host_total = '0' } = (row ?? {}) as { readonly total?: string; readonly host_total?: string }
  const { host, amountUsd } = payment
  const day = { total: dollars(total), byHost: new Map([[host, dollars(host_total)]]) }
  return exceededLimit(day, { host, usd: dollars(amountUsd), limits })
}

function entryOf(row: unknown): LedgerEntry {
  const { payment, credential, ...entry } = row as Pick<LedgerEntry, 'id' | 'purchase' | 'day' | 'state'> & {
    readonly payment: string
    readonly credential: string | null
  }
  const signed = credential === null ? {} : { credential: JSON.parse(credential) }
  return { ...entry, payment: JSON.parse(payment), ...signed }
}
