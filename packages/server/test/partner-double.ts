import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One request as a partner receives it. */
export interface PartnerRequest {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Parsed JSON; undefined when there was none. */
  readonly body: unknown
}

/** Its answer: JSON, raw text, no answer at all, or a connection cut in the middle. */
export type PartnerResponse =
  | { readonly status?: number; readonly json: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly status?: number; readonly text: string }
  | 'silence'
  | 'cut'

export interface PartnerDouble {
  readonly url: string
  readonly requested: readonly PartnerRequest[]
  stop(): Promise<void>
}

/** A partner's HTTP API on this machine, which records its requests. */
export async function aPartner(
  answer: (requested: PartnerRequest) => PartnerResponse | Promise<PartnerResponse>,
): Promise<PartnerDouble> {
  const requested: PartnerRequest[] = []
  const server = createServer((request, response) => {
    void read(request).then(async (one) => {
      requested.push(one)
      respond(response, await answer(one))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requested,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function read(request: IncomingMessage): Promise<PartnerRequest> {
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

function respond(response: ServerResponse, reported: PartnerResponse): void {
  if (reported === 'silence') return
  if (reported === 'cut') {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
    response.write('{"id":')
    response.destroy()
    return
  }
  const text = 'json' in reported ? JSON.stringify(reported.json) : reported.text
  const headers = 'json' in reported ? reported.headers : {}
  response.writeHead(reported.status ?? 200, { 'content-type': 'application/json', ...headers }).end(text)
}
