import pg from 'pg'
import type { Log } from '../log.ts'
import { arrayText } from './array-text.ts'
import { parseAddress } from './hosts.ts'
import { probe } from './probe.ts'
import { memberName } from './statement.ts'

/** The pooler between this process and PostgreSQL: none, or one that assigns a server connection per session or transaction. */
export type Pooler = 'none' | 'session' | 'transaction'

export interface PoolOptions {
  readonly url: string
  readonly connectionsMax: number
  readonly log: Log
  /** 0: no limit. */
  readonly statementTimeoutMs: number
  /** Time after which the server of an unanswered statement is checked; 2 s by default. */
  readonly silentMsMax?: number
  /** Longest that a server may take to open a connection; 2 s by default. */
  readonly connectMsMax?: number
  readonly pooler: Pooler
  /** Longest wait for a response, where nobody watches the connections. */
  readonly queryMsMax?: number
  /** Runs on each new connection before anything else does. Must not throw. */
  readonly onConnect?: (connection: Pick<Connection, 'query'>) => Promise<void>
}

/** A connection with exclusive use until `release`. */
export interface Connection {
  /** Sends a statement without waiting for those before it, which the server executes first. Statements of one tick go out in one write. */
  query(query: pg.QueryConfig | string): Promise<pg.QueryResult>
  /** Lets the next statements take any time, until the connection is given back. The caller has ended the server's own limit. */
  allowAnyTime(): void
  /** Gives the connection back, or closes it if it may be unusable. */
  release(state: 'usable' | 'broken'): void
}

export interface Connections {
  /**
   * Waits at most ten seconds for a connection. With several servers it is one that takes writes, if any of them does. Of the free ones it is
   * one that has run the statement of this name, if any has, and else the oldest.
   */
  acquire(statement?: string): Promise<Connection>
  use(): PoolUse
  /** Ends all connections; those that do not end within three seconds are cut. */
  close(): Promise<void>
}

/** The connections of a pool at this moment, those of them that are free, and the callers that wait for one. */
export interface PoolUse {
  readonly open: number
  readonly idle: number
  readonly waiting: number
}

/** Longest wait for a connection of the pool, and longest that one server may take to open one. */
const acquireMsMax = 10_000
/**
 * A connection that nobody used for this long is closed. A new one plans each statement again and reads the catalogue, which costs more than many
 * executions, so that a burst that comes back within a minute should find the connections of the last one.
 */
const unusedMsMax = 60_000
const connectMsMaxDefault = 2_000
/** A statement that is not answered for this long makes the pool check whether its server still works on it. */
const silentMsMaxDefault = 2_000
const lookEveryMs = 250
/** Time for a response that is on its way when the server reports that it has finished. */
const graceMs = 500
/** Longest time, in milliseconds, until the loss of a server that became silent is noticed: its silence, the next look and the try to connect. */
export const noticedMsMax = silentMsMaxDefault + lookEveryMs + connectMsMaxDefault
const closeMsMax = 3_000
export const idleMsMaxDefault = 30_000

const INT8 = 20
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8
      ? (text: string) => BigInt(text)
      : pg.types.getTypeParser(oid, format)) as pg.CustomTypesConfig['getTypeParser'],
}

/** The state of an open connection. */
interface Session {
  readonly url: string
  /** Counts the connections of the pool in the order in which they were begun. */
  readonly place: number
  /** Names of the statements that it has run, which its server has planned. */
  readonly statements: Set<string>
  /** The server's process; undefined behind a pooler, which shows another number. */
  pid: number | undefined
  inUse: boolean
  /** Statements that are not answered yet. */
  open: number
  /** The time at which the first of them was sent, or the one before it was answered, by `performance.now()`. */
  sentAtMs: number | undefined
  isChecked: boolean
  /** Whether its statements may take any time. */
  mayTakeAnyTime: boolean
}

interface ServerPool {
  readonly pool: pg.Pool
  readonly servers: Servers
  readonly sessions: ReadonlyMap<pg.Client, Session>
  send(client: pg.Client, query: pg.QueryConfig | string): Promise<pg.QueryResult>
}

/** The driver's query, with the part of it that its types leave out: the names of the columns that a row gets. */
type Described = pg.Query & { handleRowDescription(message: { readonly fields: { name: string }[] }): void }
const DriverQuery = pg.Query as unknown as new (
  text: string,
  values: unknown[] | undefined,
  done: (error: Error | null | undefined, result: pg.QueryResult) => void,
) => Described

function parameterOf(value: unknown): unknown {
  return Array.isArray(value) ? (arrayText(value) ?? value) : value
}

/** Gives the driver a query of a class of its own: it would copy a plain one member by member, which takes longer than to write the statement. */
function queryOn(client: pg.Client, query: pg.QueryConfig | string): Promise<pg.QueryResult> {
  const { text, values, name }: pg.QueryConfig = typeof query === 'string' ? { text: query } : query
  return new Promise((resolve, reject) => {
    const sent = new DriverQuery(text, values?.map(parameterOf), (error, result) =>
      error ? reject(error) : resolve(result),
    )
    const describe = sent.handleRowDescription.bind(sent)
    // Once for a result, before the driver makes its rows, so that no row is copied.
    sent.handleRowDescription = (message) => {
      for (const field of message.fields) field.name = memberName(field.name)
      describe(message)
    }
    client.query(name === undefined ? sent : Object.assign(sent, { name }))
  })
}

type Sessions = Map<pg.Client, Session>

/** The class of connections to the server that is current when each is opened. */
function clientOf(servers: Servers, sessions: Sessions, connectMsMax = connectMsMaxDefault): typeof pg.Client {
  let begun = 0
  return class ServerClient extends pg.Client {
    readonly #url: string
    constructor(config?: pg.ClientConfig) {
      const url = servers.current()
      super({ ...config, connectionString: url, connectionTimeoutMillis: connectMsMax })
      this.#url = url
      begun += 1
      const unused = {
        pid: undefined,
        inUse: true,
        open: 0,
        sentAtMs: undefined,
        isChecked: false,
        mayTakeAnyTime: false,
      }
      sessions.set(this, { url, place: begun, statements: new Set(), ...unused })
      this.once('end', () => sessions.delete(this))
    }
    override connect(): Promise<pg.Client>
    override connect(callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void)): void
    override connect(callback?: (error: Error & null, client: pg.Client) => void): Promise<pg.Client> | undefined {
      if (callback === undefined) return super.connect()
      super.connect((error: Error) => {
        if (error) {
          sessions.delete(this)
          servers.failed(this.#url)
        }
        callback(error as Error & null, this)
      })
      return undefined
    }
  }
}

/** Sends a statement, and notes when, so that a connection without responses is noticed. */
async function sendOn(
  session: Session | undefined,
  client: pg.Client,
  query: pg.QueryConfig | string,
): Promise<pg.QueryResult> {
  if (session === undefined) return queryOn(client, query)
  session.sentAtMs ??= performance.now()
  session.open += 1
  if (typeof query === 'object' && query.name !== undefined) session.statements.add(query.name)
  const { stream } = client.connection
  stream.cork()
  process.nextTick(() => stream.uncork())
  try {
    return await queryOn(client, query)
  } catch (error) {
    // The driver creates the error where it reads from the socket, which says nothing of its statement.
    if (error instanceof Error) Error.captureStackTrace(error)
    throw error
  } finally {
    session.open -= 1
    session.sentAtMs = session.open === 0 ? undefined : performance.now()
  }
}

/** A pool whose connections go to the server that takes writes, where one is needed. Nobody watches for silence. */
export function openServerPool(options: PoolOptions): ServerPool {
  const servers = createServers(options.url)
  const sessions: Sessions = new Map()
  const pool = new pg.Pool({
    Client: clientOf(servers, sessions, options.connectMsMax),
    max: options.connectionsMax,
    types,
    pipeline: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: 2_000,
    connectionTimeoutMillis: acquireMsMax,
    idleTimeoutMillis: unusedMsMax,
    application_name: 'purser',
    ...(options.queryMsMax !== undefined && { query_timeout: options.queryMsMax }),
    onConnect: (client) => introduce({ servers, sessions, send }, options, client as pg.Client),
  })
  pool.on('error', ({ message }) => {
    if (!pool.ending) options.log.warn({ reason: message }, 'an idle database connection was lost')
  })
  const send: ServerPool['send'] = (client, query) => sendOn(sessions.get(client), client, query)
  // A connection lost between two statements of a transaction would otherwise end the process; the next statement fails.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return { pool, servers, sessions, send }
}

/** Sets the time limits by a statement: the driver sends no zero as a start parameter, and a pooler refuses any. Refuses a server without writes where one is needed. */
async function introduce(
  { servers, sessions, send }: Omit<ServerPool, 'pool'>,
  { statementTimeoutMs, pooler, onConnect }: PoolOptions,
  client: pg.Client,
): Promise<void> {
  const limits =
    pooler !== 'transaction'
      ? `set_config('statement_timeout', '${statementTimeoutMs}', false), set_config('idle_in_transaction_session_timeout', '${idleMsMaxDefault}', false),`
      : ''
  const { rows } = await send(
    client,
    `select ${limits} pg_backend_pid() as pid, current_setting('transaction_read_only') = 'on' as is_read_only`,
  )
  const session = sessions.get(client)
  const [row] = rows as { pid: number; isReadOnly: boolean }[]
  if (row?.isReadOnly === true && servers.need === 'read-write') {
    if (session !== undefined) servers.failed(session.url)
    throw unreachable('the database server takes no writes')
  }
  if (session !== undefined && pooler === 'none') session.pid = row?.pid
  await onConnect?.({ query: (query) => send(client, query) })
}

/**
 * Opens a pool of connections. Nothing is sent until the first `acquire`. A connection whose server died without closing it is noticed within
 * five seconds: a statement that is not answered for two seconds is looked up at its server, over a connection of its own. If the server
 * does not respond or does not work on the statement, the connection is cut, and with it all idle ones to that server.
 */
export function openConnections(options: PoolOptions): Connections {
  const opened = openServerPool(options)
  const { pool, servers, sessions } = opened
  const watch = setInterval(() => cutSilent(opened, options), lookEveryMs).unref()
  return {
    async acquire(statement) {
      for (let attempt = 1; ; attempt++) {
        try {
          const client = await lendBest(opened, statement)
          const session = sessions.get(client)
          if (session !== undefined) session.inUse = true
          return connectionOf(opened, client)
        } catch (error) {
          if (attempt >= servers.count || !isConnectFailure(error)) throw error
        }
      }
    },
    use: () => ({ open: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    async close() {
      const cutAll = setTimeout(() => {
        for (const client of sessions.keys()) cut(client, 'closed')
      }, closeMsMax)
      await pool.end()
      clearTimeout(cutAll)
      clearInterval(watch)
    },
  }
}

/** The driver's pool with the parts that its types leave out. It lends the last of `_idle` when `_pulseQueue` is called: a tick after `connect`. */
type LendingPool = pg.Pool & { readonly _idle: { readonly client: pg.Client }[]; _pulseQueue(): void }

/**
 * Lends the best free connection. A connection plans each statement for itself, so that work that needs few connections at once plans on few. The pool
 * by itself would lend the connection that was given back last, and a tick later, when another caller may have chosen another one.
 */
function lendBest({ pool, sessions }: Pick<ServerPool, 'pool' | 'sessions'>, statement = ''): Promise<pg.PoolClient> {
  const lending = pool as LendingPool
  const { _idle: idle } = lending
  if (idle.length === 0) return pool.connect()
  const rankOf = ({ client }: { readonly client: pg.Client }): number => {
    const { place, statements } = sessions.get(client) ?? { place: Number.POSITIVE_INFINITY }
    return statements?.has(statement) ? place - Number.MAX_SAFE_INTEGER : place
  }
  idle.sort((one, other) => rankOf(other) - rankOf(one))
  const lent = pool.connect()
  lending._pulseQueue()
  return lent
}

function connectionOf({ sessions, send }: ServerPool, client: pg.PoolClient): Connection {
  return {
    query: (query) => send(client, query),
    allowAnyTime() {
      Object.assign(sessions.get(client) ?? {}, { mayTakeAnyTime: true })
    },
    release(state) {
      Object.assign(sessions.get(client) ?? {}, { inUse: false, mayTakeAnyTime: false })
      client.release(state === 'broken')
    },
  }
}

/** Examines the servers of statements that are not answered, and cuts the connections whose statement is past its timeout. */
function cutSilent(
  opened: ServerPool,
  { silentMsMax = silentMsMaxDefault, statementTimeoutMs, log }: PoolOptions,
): void {
  const responseMsMax = statementTimeoutMs === 0 ? Number.POSITIVE_INFINITY : statementTimeoutMs + 2 * silentMsMax
  const nowMs = performance.now()
  const silent = [...opened.sessions].filter(
    ([, { sentAtMs, isChecked }]) => sentAtMs !== undefined && !isChecked && nowMs - sentAtMs > silentMsMax,
  )
  for (const [url, suspects] of Map.groupBy(silent, ([, session]) => session.url))
    void examine(opened, log, url, suspects)
  for (const [client, { sentAtMs, mayTakeAnyTime }] of silent)
    if (sentAtMs !== undefined && !mayTakeAnyTime && nowMs - sentAtMs > responseMsMax)
      cut(client, 'a statement was not answered within its timeout')
}

function cut(client: pg.Client, reason: string): void {
  client.connection.stream.destroy(unreachable(reason))
}

/** Looks up statements that are not answered at their server, and cuts the connections of those on which it does not work. */
async function examine(
  { servers, sessions }: ServerPool,
  log: Log,
  url: string,
  suspects: readonly (readonly [pg.Client, Session])[],
): Promise<void> {
  for (const [, session] of suspects) session.isChecked = true
  const sentAt = new Map(suspects.map(([client, { sentAtMs }]) => [client, sentAtMs]))
  const stillWaits = (client: pg.Client): boolean => {
    const sentAtMs = sessions.get(client)?.sentAtMs
    return sentAtMs !== undefined && sentAtMs === sentAt.get(client)
  }
  const pids = suspects.flatMap(([, { pid }]) => (pid === undefined ? [] : [pid]))
  const found = await probe(url, pids)
  if (found !== 'silent') await new Promise((resolve) => setTimeout(resolve, graceMs))
  const lost = suspects.filter(
    ([client, { pid }]) =>
      stillWaits(client) && (found === 'silent' || (pid !== undefined && found !== 'works' && !found.has(pid))),
  )
  for (const [, session] of suspects) session.isChecked = false
  if (lost.length === 0) return
  log.error({ connections: lost.length }, 'the database server does not respond; its connections are closed')
  if (found === 'silent') servers.failed(url)
  for (const [client] of lost) cut(client, 'the database server does not respond')
  for (const [client, session] of sessions) if (!session.inUse && session.url === url) cut(client, 'closed with others')
}

interface Servers {
  readonly need: 'any' | 'read-write'
  readonly count: number
  current(): string
  /** The next server is used from now on, unless another failure moved on already. */
  failed(url: string): void
}

function createServers(address: string): Servers {
  const parsed = parseAddress(address)
  if ('fault' in parsed) throw new Error(`the database address is invalid: ${parsed.fault}`)
  const { urls, need } = parsed
  let place = 0
  const current = (): string => urls[place] ?? ''
  return {
    need,
    count: urls.length,
    current,
    failed(url) {
      if (url === current()) place = (place + 1) % urls.length
    },
  }
}

/** An error with the code of a network failure, so that callers see an unavailable database. */
function unreachable(message: string): Error {
  return Object.assign(new Error(message), { code: 'ETIMEDOUT' })
}

/** Whether a server could not be used at all, as opposed to a pool that is full. */
function isConnectFailure(error: unknown): boolean {
  return !(error instanceof Error && error.message === 'timeout exceeded when trying to connect')
}
