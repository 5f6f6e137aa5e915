import { createServer, connect as dial, type Socket } from 'node:net'

/** A TCP address before a PostgreSQL on a socket, whose network a test freezes: nothing is forwarded and nothing is closed. */
export interface DatabaseProxy {
  /** The database's address through the proxy. */
  readonly url: string
  /** Connections so far, of which the last is the newest. */
  count(): number
  /** From now on nothing passes, on open connections and on new ones. `open`: on open connections only. */
  freeze(which?: 'all' | 'open'): void
  /** Data that did not pass meanwhile is lost; new connections pass again. */
  thaw(): void
  stop(): Promise<void>
}

export async function startDatabaseProxy(url: string): Promise<DatabaseProxy> {
  const target = new URL(url.replace('@/', '@localhost/'))
  const socketDir = target.searchParams.get('host') ?? ''
  const pairs = new Set<readonly [Socket, Socket]>()
  let isFrozen = false
  let connections = 0
  const server = createServer((client) => {
    connections += 1
    client.on('error', () => undefined)
    if (isFrozen) return void pairs.add([client, client])
    const database = dial(`${socketDir}/.s.PGSQL.${target.searchParams.get('port') ?? '5432'}`)
    database.on('error', () => client.destroy())
    client.pipe(database)
    database.pipe(client)
    pairs.add([client, database])
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `postgres://${target.username}@127.0.0.1:${port}${target.pathname}`,
    count: () => connections,
    freeze(which = 'all') {
      isFrozen = which === 'all'
      for (const [client, database] of pairs) {
        client.unpipe(database)
        database.unpipe(client)
        client.pause()
        database.pause()
      }
    },
    thaw() {
      isFrozen = false
    },
    async stop() {
      for (const sockets of pairs) for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
