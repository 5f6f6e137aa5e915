import { createHash } from 'node:crypto'
import pg from 'pg'
import type { z } from 'zod'
import type { Log } from '../log.ts'

/** A statement and its values, kept apart: values never become SQL text. */
export interface Sql {
  readonly text: string
  readonly values: readonly unknown[]
}

const statementNames = new Map<string, string>()

/** Tagged template for SQL. Every `${value}` becomes a parameter; nested `sql` fragments are spliced in. */
export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  let text = strings[0] ?? ''
  const parameters: unknown[] = []
  values.forEach((value, index) => {
    if (isSql(value)) {
      const offset = parameters.length
      text += value.text.replace(/\$(\d+)/g, (_, position: string) => `$${Number(position) + offset}`)
      parameters.push(...value.values)
    } else {
      parameters.push(value)
      text += `$${parameters.length}`
    }
    text += strings[index + 1] ?? ''
  })
  return new Statement(text, parameters)
}

class Statement implements Sql {
  readonly text: string
  readonly values: readonly unknown[]
  constructor(text: string, values: readonly unknown[]) {
    this.text = text
    this.values = values
  }
}

function isSql(value: unknown): value is Sql {
  return value instanceof Statement
}

/** Named statements are parsed once per connection, which is twice as fast; the name is the text's hash. */
function statementName(text: string): string {
  const known = statementNames.get(text)
  if (known !== undefined) return known
  const name = `s_${createHash('sha256').update(text).digest('base64url').slice(0, 24)}`
  statementNames.set(text, name)
  return name
}

/** What a statement can be run on: the pool (each on its own) or a transaction. Rows come back in camelCase and parsed. */
export interface Queryable {
  /** The one row; throws when there are none or several. */
  one<S extends z.ZodType>(row: S, statement: Sql): Promise<z.output<S>>
  /** The row, or undefined; throws when there are several. */
  maybeOne<S extends z.ZodType>(row: S, statement: Sql): Promise<z.output<S> | undefined>
  many<S extends z.ZodType>(row: S, statement: Sql): Promise<z.output<S>[]>
  /** Runs it for its effect; answers how many rows it touched. */
  run(statement: Sql): Promise<number>
}

/** An open transaction. Work that must follow its commit (wake a worker, add to a set) is given to `afterCommit`. */
export interface Tx extends Queryable {
  readonly kind: 'tx'
  afterCommit(work: () => void): void
  /** Whoever opened the transaction waits for this work, after the commit; what it throws is thrown to them. */
  beforeReturn(work: () => Promise<void>): void
}

export interface TxOptions {
  /** Longest that the transaction may idle between two statements before the database rolls it back; 30 s where it is left out. */
  readonly idleMsMax?: number
}

export interface Db extends Queryable {
  readonly kind: 'db'
  /**
   * Runs the work in one transaction (READ COMMITTED) and commits when it returns; anything thrown rolls back.
   * Inside a verb that already runs in a transaction it joins that one.
   */
  tx<T>(work: (tx: Tx) => Promise<T>, options?: TxOptions): Promise<T>
  close(): Promise<void>
}

const camelNames = new Map<string, string>()

function camel(column: string): string {
  let name = camelNames.get(column)
  if (name === undefined) {
    name = column.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
    camelNames.set(column, name)
  }
  return name
}

function rowsOf<S extends z.ZodType>(row: S, result: pg.QueryResult): z.output<S>[] {
  return result.rows.map((raw: Record<string, unknown>) => {
    const named: Record<string, unknown> = {}
    for (const column in raw) named[camel(column)] = raw[column]
    return row.parse(named)
  })
}

function queryableOn(client: Pick<pg.ClientBase, 'query'>): Queryable {
  const send = (statement: Sql): Promise<pg.QueryResult> =>
    client.query({ name: statementName(statement.text), text: statement.text, values: [...statement.values] })
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

const INT8 = 20
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8
      ? (text: string) => BigInt(text)
      : pg.types.getTypeParser(oid, format)) as pg.CustomTypesConfig['getTypeParser'],
}

export interface DbOptions {
  readonly url: string
  readonly connectionsMax: number
  readonly log: Log
  /** Longest that one statement may run, so that a stuck lock answers 503 and not never. */
  readonly statementTimeoutMs?: number
  /** Runs on each new connection before anything else does. Must not throw. */
  readonly onConnect?: (connection: Queryable) => Promise<void>
}

/** Opens a pool of connections. Nothing is sent until the first statement. */
export function openDb(options: DbOptions): Db {
  const config: pg.PoolConfig = {
    connectionString: options.url,
    max: options.connectionsMax,
    types,
    connectionTimeoutMillis: 10_000,
    statement_timeout: options.statementTimeoutMs ?? 30_000,
    idle_in_transaction_session_timeout: 30_000,
    application_name: 'purser',
  }
  const { onConnect } = options
  const pool = new pg.Pool({
    ...config,
    ...(onConnect && { onConnect: (client: pg.ClientBase) => onConnect(queryableOn(client)) }),
  })
  pool.on('error', ({ message }) => {
    if (!pool.ending) options.log.warn({ reason: message }, 'an idle database connection was lost')
  })
  // Lost between two statements of a transaction, nobody else would hear of it and the process would end; the next statement fails.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return {
    kind: 'db',
    ...queryableOn(pool as unknown as pg.ClientBase),
    tx: (work, txOptions) => inTransaction(pool, work, txOptions),
    close: () => pool.end(),
  }
}

async function inTransaction<T>(
  pool: pg.Pool,
  work: (tx: Tx) => Promise<T>,
  { idleMsMax }: TxOptions = {},
): Promise<T> {
  const client = await pool.connect()
  const after: (() => void)[] = []
  const waitedFor: (() => Promise<void>)[] = []
  let broken: Error | undefined
  let result: T
  try {
    await client.query(idleMsMax === undefined ? 'begin' : beginWithIdle(idleMsMax))
    const tx: Tx = {
      kind: 'tx',
      ...queryableOn(client),
      afterCommit: (work) => after.push(work),
      beforeReturn: (work) => waitedFor.push(work),
    }
    result = await work(tx)
    await client.query('commit')
    for (const run of after) run()
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => {
      broken = failure
    })
    throw error
  } finally {
    client.release(broken)
  }
  // Without the connection, which that work may need one of.
  await Promise.all(waitedFor.map((wait) => wait()))
  return result
}

/** Both commands in one message, so that the limit costs no round trip. */
function beginWithIdle(idleMsMax: number): string {
  return `begin; set local idle_in_transaction_session_timeout = ${Math.ceil(idleMsMax)}`
}

/** A `Db` whose statements and transactions all run inside the given transaction, so a whole verb commits at once. */
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

/** Whether the database refused the values of a statement, so that it certainly had no effect (classes 22 and 23 of SQLSTATE). */
export function isRefusedData(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^2[23]/.test(error.code ?? '')
}

/** Whether a statement failed, without effect, since it would break this unique constraint. */
export function breaksUnique(error: unknown, constraint: string): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505' && error.constraint === constraint
}

/** Whether the database ended a transaction because it and another waited for each other, so that it certainly had no effect. */
export function isDeadlock(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '40P01'
}

/** Whether an error says that the database is not there now, so that trying again later may work. */
export function isDatabaseGone(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = (error as { code?: unknown }).code
  if (error instanceof pg.DatabaseError)
    return typeof code === 'string' && (/^(57P0|08|53)/.test(code) || code === '57014')
  if (typeof code === 'string' && /^(ECONN|ENOENT|EPIPE|ETIMEDOUT|ENOTFOUND)/.test(code)) return true
  return /Connection terminated|connection timeout|timeout exceeded when trying to connect|Client has encountered a connection error/.test(
    error.message,
  )
}
