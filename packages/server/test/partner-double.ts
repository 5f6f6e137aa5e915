import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One request as a partner would see it. */
export interface Asked {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Parsed JSON; undefined when there was none. */
  readonly body: unknown
}

/** What it answers: JSON, raw text, nothing for ever, or a connection cut in the middle. */
export type Told =
  | { readonly status?: number; readonly json: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly status?: number; readonly text: string }
  | 'silence'
  | 'cut'

export interface PartnerDouble {
  readonly url: string
  readonly asked: readonly Asked[]
  stop(): Promise<void>
}

/** A partner's HTTP API on this machine, which remembers what it was asked. */
export async function aPartner(answer: (asked: Asked) => Told | Promise<Told>): Promise<PartnerDouble> {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    void read(request).then(async (one) => {
      asked.push(one)
      tell(response, await answer(one))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function read(request: IncomingMessage): Promise<Asked> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  const text = Buffer.concat(chunks).toString('utf8')
  const url = new URL(request.url ?? '/', 'http://partner')
  return {
    method: request.method ?? '',
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)])),
    body: text === '' ? undefined : JSON.parse(text),
  }
}

function tell(response: ServerResponse, told: Told): void {
  if (told === 'silence') return
  if (told === 'cut') {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
    response.write('{"id":')
    response.destroy()
    return
  }
  const text = 'json' in told ? JSON.stringify(told.json) : told.text
  const headers = 'json' in told ? told.headers : {}
  response.writeHead(told.status ?? 200, { 'content-type': 'application/json', ...headers }).end(text)
}
