import { createHash } from 'node:crypto'
import pg from 'pg'
import type { z } from 'zod'
import type { Log } from '../log.ts'
import { inStatementSpan } from '../tracing/spans.ts'
import { createLastWrites, type LastWrite } from './last-writes.ts'
import {
  type Connection,
  type Connections,
  idleMsMaxDefault,
  openConnections,
  openServerPool,
  type Pooler,
  type PoolOptions,
  type PoolUse,
} from './pool.ts'
import type { Queryable, Sql } from './statement.ts'

const statementNames = new Map<string, string>()

/** Named statements are parsed once per connection, which is twice as fast; the name is the text's hash. */
function statementName(text: string): string {
  const known = statementNames.get(text)
  if (known !== undefined) return known
  const name = `s_${createHash('sha256').update(text).digest('base64url').slice(0, 24)}`
  statementNames.set(text, name)
  return name
}

/** An open transaction. Work that must follow its commit (wake a worker, add to a set) is passed to `afterCommit`. */
export interface Tx extends Queryable {
  readonly kind: 'tx'
  /** Adds items to a write that the transaction makes once, right before it commits; an error of that write rolls it back. */
  writeLast<T>(write: LastWrite<T>, items: readonly T[]): void
  afterCommit(work: () => void): void
  /** The caller that opened the transaction waits for this work, after the commit; its errors are thrown to that caller. */
  beforeReturn(work: () => Promise<void>): void
}

interface TxOptions {
  /** Longest that the transaction may idle between two statements before the database rolls it back; default 30 s. */
  readonly idleMsMax?: number
  /**
   * Disables sorting in the planner, so that statements read an index in order and stop at their limit. Otherwise the planner may sort all
   * matching rows, because a partition is empty or a table was small when the plan was made. Only for statements that run nowhere else, because a
   * connection keeps their plans.
   */
  readonly readsInOrder?: boolean
  /** Whether its statements have no time limit, for work on a whole month. Otherwise each has `statementTimeoutMs`. */
  readonly takesAnyTime?: boolean
  /**
   * Whether its statements find rows by keys, of which each is given a list. Without this, the planner plans such a statement anew for each length
   * of the list, which takes longer than to execute it, and reads whole tables while they look small. Such a statement leaves out a bound that is not
   * given: `$1 is null or …` bounds no index in a plan for all values.
   */
  readonly readsByKeys?: boolean
  /** Called when the transaction has ended and its connection is free again, before `beforeReturn` is waited for. */
  readonly onReleased?: () => void
}

export interface Db extends Queryable {
  readonly kind: 'db'
  /** Set on a tenant's database: the pool that it shares with the other tenants. */
  readonly root?: Db
  /** Set on a pool: its connections. */
  readonly pool?: () => PoolUse
  /**
   * Runs the work in one transaction (READ COMMITTED), which begins with its first statement; an error rolls back. Joins the transaction of
   * the handler if it has one.
   */
  tx<T>(work: (tx: Tx) => Promise<T>, options?: TxOptions): Promise<T>
  close(): Promise<void>
}

function rowsOf<S extends z.ZodType>(row: S, { rows }: { rows: unknown[] }): z.output<S>[] {
  return rows.map((raw) => row.parse(raw))
}

type Send = (statement: Sql) => Promise<pg.QueryResult>

function queryableOn(sendUntraced: Send): Queryable {
  const send: Send = (statement) => inStatementSpan(statement.text, () => sendUntraced(statement))
  return {
    async one(row, statement) {
      const rows = rowsOf(row, await send(statement))
      const first = rows[0]
      if (rows.length !== 1 || first === undefined)
        throw new Error(`expected one row, got ${rows.length}: ${statement.text}`)
      return first
    },
    async maybeOne(row, statement) {
      const rows = rowsOf(row, await send(statement))
      if (rows.length > 1) throw new Error(`expected at most one row, got ${rows.length}: ${statement.text}`)
      return rows[0]
    },
    async many(row, statement) {
      return rowsOf(row, await send(statement))
    },
    async run(statement) {
      return (await send(statement)).rowCount ?? 0
    },
  }
}

export type { Pooler } from './pool.ts'
export { anyLength, columnNames, columnsOf, listed, type Queryable, type Sql, sql } from './statement.ts'

export interface DbOptions extends Pick<PoolOptions, 'silentMsMax' | 'connectMsMax'> {
  /** May name several servers: see `parseAddress`. */
  readonly url: string
  readonly connectionsMax: number
  readonly log: Log
  /** Longest that one statement may run, so that a blocked lock leads to a 503 and not to an endless wait; 0: as long as it takes. */
  readonly statementTimeoutMs?: number
  /** The pooler between this process and PostgreSQL. Default: `none`. */
  readonly pooler?: Pooler
  /** Whether statements are parsed once per connection; default true, except behind a pooler of transactions. */
  readonly namedStatements?: boolean
  /** Runs on each new connection before anything else does. Must end, and must not throw. */
  readonly onConnect?: (connection: Queryable) => Promise<void>
}

/**
 * A pool for a library that writes its own statements. It is closed with `end`. A statement that is not answered for four seconds fails, and its
 * connection is closed.
 */
export function openPool(options: DbOptions): pg.Pool {
  const { statementTimeoutMs = librarySilentMsMax, pooler = 'none', url, connectionsMax, log } = options
  const limits = { statementTimeoutMs, queryMsMax: librarySilentMsMax }
  return openServerPool({
    url,
    connectionsMax,
    log,
    pooler,
    ...limits,
    ...onConnectOf(options, { isNamed: pooler !== 'transaction' }),
  }).pool
}

const librarySilentMsMax = 4_000

interface Naming {
  /** Whether connections keep the plans of statements by their names. */
  readonly isNamed: boolean
}

/** Settings of each transaction. */
interface Begin extends Naming {
  /** Set in each transaction, where a pooler gives each transaction another session. */
  readonly statementTimeoutMs: number | undefined
}

/** Opens a pool of connections. Nothing is sent until the first statement. */
export function openDb(options: DbOptions): Db {
  const { url, connectionsMax, log, pooler = 'none', statementTimeoutMs = 30_000 } = options
  const isNamed = options.namedStatements ?? pooler !== 'transaction'
  const begin = { isNamed, statementTimeoutMs: pooler === 'transaction' ? statementTimeoutMs : undefined }
  const connections = openConnections({
    url,
    connectionsMax,
    log,
    pooler,
    statementTimeoutMs,
    ...(options.silentMsMax !== undefined && { silentMsMax: options.silentMsMax }),
    ...(options.connectMsMax !== undefined && { connectMsMax: options.connectMsMax }),
    ...onConnectOf(options, begin),
  })
  return {
    kind: 'db',
    ...queryableOn((statement) => runAlone(connections, queryOf(statement, begin))),
    tx: (work, txOptions) => inTransaction({ connections, begin }, work, txOptions),
    pool: connections.use,
    close: () => connections.close(),
  }
}

function onConnectOf({ onConnect }: DbOptions, naming: Naming): Partial<Pick<PoolOptions, 'onConnect'>> {
  if (onConnect === undefined) return {}
  return {
    onConnect: (connection: Pick<Connection, 'query'>) =>
      onConnect(queryableOn((one) => connection.query(queryOf(one, naming)))),
  }
}

function queryOf({ text, values }: Sql, { isNamed }: Naming): pg.QueryConfig {
  return { ...(isNamed && { name: statementName(text) }), text, values: [...values] }
}

async function runAlone(connections: Connections, query: pg.QueryConfig): Promise<pg.QueryResult> {
  const connection = await connections.acquire(query.name)
  try {
    const result = await connection.query(query)
    connection.release('usable')
    return result
  } catch (error) {
    connection.release(isConnectionSpoiled(error) ? 'broken' : 'usable')
    // The statement had no effect. Without its name any connection parses it anew, also one that has the same stale plan.
    const { name: _, ...unnamed } = query
    if (isPlanStale(error)) return runAlone(connections, unnamed)
    throw error
  }
}

async function inTransaction<T>(
  { connections, begin }: { readonly connections: Connections; readonly begin: Begin },
  work: (tx: Tx) => Promise<T>,
  options: TxOptions = {},
): Promise<T> {
  const connection = await connections.acquire()
  if (options.takesAnyTime === true) connection.allowAnyTime()
  const after: (() => void)[] = []
  const waitedFor: (() => Promise<void>)[] = []
  const last = createLastWrites()
  let state: 'usable' | 'broken' = 'usable'
  let isBegun = false
  let failure: unknown
  let result: T
  try {
    const noted = async <R>(sent: Promise<R>): Promise<R> => {
      try {
        return await sent
      } catch (error) {
        if (isConnectionSpoiled(error)) state = 'broken'
        if (!isAborted(error)) failure ??= error
        throw error
      }
    }
    const tx: Tx = {
      kind: 'tx',
      ...queryableOn((statement) => {
        const begun = isBegun ? undefined : noted(connection.query(beginWith(begin, options)))
        isBegun = true
        return resultAfter(begun, noted(connection.query(queryOf(statement, begin))))
      }),
      writeLast: last.add,
      afterCommit: (work) => after.push(work),
      beforeReturn: (work) => waitedFor.push(work),
    }
    result = await work(tx)
    const final = await last.run(tx)
    const written = final && tx.run(final)
    if (final !== undefined && !isEncodable(final.values)) await written
    if (isBegun) await Promise.all([written, connection.query('commit')])
    for (const run of after) run()
  } catch (error) {
    if (isBegun)
      await connection.query('rollback').catch(() => {
        state = 'broken'
      })
    // Statements that are sent together fail together. What the caller learns is why the first of them failed.
    throw isAborted(error) ? (failure ?? error) : error
  } finally {
    connection.release(state)
    options.onReleased?.()
  }
  // Runs after the connection is released, since that work may need one.
  await Promise.all(waitedFor.map((wait) => wait()))
  return result
}

/** Returns the second result. Both were sent, and the error of the first one explains that of the second. */
async function resultAfter<R>(first: Promise<unknown> | undefined, second: Promise<R>): Promise<R> {
  const [, result] = await Promise.all([first, second])
  return result
}

/**
 * Whether the driver can encode these values whatever they are. A statement that it cannot encode never reaches the server, so that a commit
 * behind it would commit the rest of its transaction.
 */
function isEncodable(values: readonly unknown[]): boolean {
  return values.every((value) =>
    Array.isArray(value)
      ? isEncodable(value)
      : typeof value !== 'object' || value === null || value instanceof Date || value instanceof Uint8Array,
  )
}

/** All commands in one message, so that the limits need no extra round trip. */
function beginWith(
  { statementTimeoutMs }: Begin,
  { idleMsMax, readsInOrder, readsByKeys, takesAnyTime }: TxOptions,
): string {
  const idle = idleMsMax ?? (statementTimeoutMs === undefined ? undefined : idleMsMaxDefault)
  const limit = takesAnyTime === true ? 0 : statementTimeoutMs
  return [
    'begin',
    ...(limit === undefined ? [] : [`set local statement_timeout = ${limit}`]),
    ...(idle === undefined ? [] : [`set local idle_in_transaction_session_timeout = ${Math.ceil(idle)}`]),
    ...(readsInOrder === true ? ['set local enable_seqscan = off', 'set local enable_sort = off'] : []),
    ...(readsByKeys === true
      ? ['set local enable_seqscan = off', 'set local plan_cache_mode = force_generic_plan']
      : []),
  ].join('; ')
}

/** A `Db` whose statements and transactions all run inside the given transaction, so that a whole handler commits at once. */
export function dbInside(tx: Tx): Db {
  return {
    kind: 'db',
    one: tx.one,
    maybeOne: tx.maybeOne,
    many: tx.many,
    run: tx.run,
    tx: (work) => work(tx),
    close: () => Promise.reject(new Error('a transaction cannot close the pool')),
  }
}

/** SQLSTATE classes that no row causes: connection, transaction state, rollback, resources, locks, intervention, and input or output. */
const causedByNoRow = /^(08|25|40|53|55|57|58)/

/**
 * Whether the database or a trigger refused a statement, which then had no effect, for a reason that may be in one of its rows. Only the classes that
 * no row causes are excluded, so that a row fails alone also for a reason that nobody foresaw, such as a value too long for an index (54000).
 */
export function isRefusedData(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code !== undefined && !causedByNoRow.test(error.code)
}

/** Whether a statement failed, without effect, because it inserts something for an organisation that was deleted (migration 0258). */
export function isOfDeletedOrganisation(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === 'PU001'
}

/** Whether a statement failed, without effect, because it would violate this unique constraint. */
export function breaksUnique(error: unknown, constraint: string): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505' && error.constraint === constraint
}

/** Whether a transaction with a snapshot lost to another that changed what it locks or changes. */
export function isSerializationFailure(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '40001'
}

/** Whether the database ended a transaction because of a deadlock; it then had no effect. */
export function isDeadlock(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '40P01'
}

/** Whether a statement failed, without effect, because it did not get a lock within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03'
}

/** Whether a statement was refused only because another one of its transaction had failed. */
function isAborted(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25P02'
}

/** Whether a server refused a write because it is a standby, which a server that was primary may have become. */
function isReadOnly(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006'
}

/** Whether a statement that was parsed before a migration no longer fits its tables. */
function isPlanStale(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '0A000' && error.routine === 'RevalidateCachedQuery'
}

/** Whether nothing more may be sent on the connection that an error came from. */
function isConnectionSpoiled(error: unknown): boolean {
  return (
    !(error instanceof pg.DatabaseError) ||
    isReadOnly(error) ||
    isPlanStale(error) ||
    /^(57P0|08)/.test(error.code ?? '')
  )
}

/** Whether an error means that the database is unavailable, so that a later retry may succeed. */
export function isDatabaseGone(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = (error as { code?: unknown }).code
  if (error instanceof pg.DatabaseError) return isReadOnly(error) || isPlanStale(error) || isUnavailable(error)
  if (
    typeof code === 'string' &&
    /^(ECONN|ENOENT|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN)/.test(code)
  )
    return true
  return (
    isConnectTimeout(error) || /Connection terminated|connection timeout|Client has encountered/.test(error.message)
  )
}

/** Whether no connection was open in time. */
export function isConnectTimeout(error: unknown): boolean {
  return error instanceof Error && /timeout expired|timeout exceeded when trying to connect/.test(error.message)
}

/**
 * Codes of statements that had no effect and may succeed later (PostgreSQL, appendix A): conflicts and deadlocks, waits for a lock or in a transaction
 * that took too long, and failures of the disk.
 */
const passing = ['40001', '40P01', '55P03', '25P03', '57014', '58030']

function isUnavailable({ code = '' }: pg.DatabaseError): boolean {
  return /^(57P0|08|53)/.test(code) || passing.includes(code)
}
