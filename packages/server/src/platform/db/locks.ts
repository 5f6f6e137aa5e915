import pg from 'pg'

/** The session-level locks of one process, all held by one connection, which is opened when the first is asked for. */
export interface Locks {
  exclusively(lockName: string, work: (lost: AbortSignal) => Promise<void>): Promise<'done' | 'taken'>
  close(): Promise<void>
}

interface Session {
  readonly client: pg.Client
  /** Aborted when the connection is gone, and every lock with it. */
  readonly lost: AbortController
}

/**
 * A connection for each lock would cost PostgreSQL a new process several times a second, since most work that is done by one
 * process at a time is short and due again and again. One session may take a lock that it holds already, so what is held here
 * is remembered here too.
 */
export function createLocks(config: pg.ClientConfig): Locks {
  const held = new Set<string>()
  let asked: Promise<unknown> = Promise.resolve()
  let opening: Promise<Session> | undefined

  const open = async (): Promise<Session> => {
    const session = { client: new pg.Client(config), lost: new AbortController() }
    const lose = (): void => {
      session.lost.abort()
      opening = undefined
    }
    session.client.once('error', lose).once('end', lose)
    // After the first error there may be more, and one that nobody hears ends the process.
    session.client.on('error', () => undefined)
    await session.client.connect()
    return session
  }
  const session = (): Promise<Session> => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return opening
  }
  /** One statement at a time: the connection is everybody's. */
  const inTurn = <T>(ask: () => Promise<T>): Promise<T> => {
    const answered = asked.then(ask)
    asked = answered.catch(() => undefined)
    return answered
  }
  return {
    async exclusively(lockName, work) {
      if (held.has(lockName)) return 'taken'
      held.add(lockName)
      try {
        const { client, lost } = await session()
        if (!(await inTurn(() => tryLock(client, lockName)))) return 'taken'
        try {
          await work(lost.signal)
          return 'done'
        } finally {
          if (!lost.signal.aborted) await inTurn(() => unlock(client, lockName))
        }
      } finally {
        held.delete(lockName)
      }
    },
    async close() {
      await opening?.then(({ client }) => client.end()).catch(() => undefined)
    },
  }
}

async function tryLock(client: pg.Client, lockName: string): Promise<boolean> {
  const answer = await client.query<{ held: boolean }>('select pg_try_advisory_lock(hashtextextended($1, 0)) as held', [
    lockName,
  ])
  return answer.rows[0]?.held === true
}

/** A connection that dies meanwhile has let go of the lock by itself. */
async function unlock(client: pg.Client, lockName: string): Promise<void> {
  await client.query('select pg_advisory_unlock(hashtextextended($1, 0))', [lockName]).catch(() => undefined)
}
