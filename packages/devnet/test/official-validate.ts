import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { z } from 'zod'
import { type DevChain, fundToken } from '../src/index.ts'
import { isRecord } from '../src/rpc.ts'

const Check = z.object({ label: z.string(), detail: z.string().optional(), severity: z.string() })
const Count = z.int().min(0)
const Report = z.object({
  discovery: z.object({ found: z.boolean(), valid: z.boolean(), checks: z.array(Check) }),
  endpoints: z.array(
    z.object({
      method: z.string(),
      path: z.string(),
      challenge: z.array(Check),
      errorHandling: z.array(Check),
      payment: z.array(Check),
    }),
  ),
  summary: z.object({ passed: Count, failed: Count, warnings: Count, suggested: Count, skipped: Count }),
})

type ValidationReport = z.infer<typeof Report>

export interface Validation {
  readonly exitCode: number | null
  readonly report: ValidationReport
}

const bin = path.join(path.dirname(createRequire(import.meta.url).resolve('mppx')), 'bin.js')
const redirect = path.join(import.meta.dirname, 'official-rpc-redirect.ts')

/** Runs the official `mppx validate` against a shop. `nodes` maps the public nodes that it queries to local ones. */
export async function validate(
  url: string,
  options: { readonly nodes: Readonly<Record<string, string>>; readonly privateKey?: string },
): Promise<Validation> {
  const { nodes, privateKey } = options
  const env = {
    HOME: os.tmpdir(),
    LOCAL_NODES: JSON.stringify(nodes),
    ...(privateKey !== undefined && { MPPX_PRIVATE_KEY: privateKey }),
  }
  const child = spawn(process.execPath, ['--import', redirect, bin, 'validate', url, '--output-json'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text
    })
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { exitCode, report: Report.parse(jsonIn(printed)) }
}

function jsonIn({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): unknown {
  try {
    return JSON.parse(stdout)
  } catch {
    throw new Error(`mppx validate gave no report: ${stdout}${stderr}`)
  }
}

/** A node that forwards to the chain, and gives test money as Tempo's public one does (`tempo_fundAddress`). */
export async function openFaucetNode(chain: DevChain): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(Buffer.from(chunk))
    const body = Buffer.concat(chunks).toString()
    res.setHeader('content-type', 'application/json').end(await answer(chain, body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function answer(chain: DevChain, body: string): Promise<string> {
  const requested: unknown = JSON.parse(body)
  if (isRecord(requested) && requested.method === 'tempo_fundAddress' && Array.isArray(requested.params)) {
    const account = `0x${String(requested.params[0]).slice(2)}` as const
    const hash = await fundToken(chain, 'pathUSD', account, 1_000_000_000n)
    return JSON.stringify({ jsonrpc: '2.0', id: requested.id, result: [hash] })
  }
  const headers = { 'content-type': 'application/json' }
  return (await fetch(chain.rpcUrl, { method: 'POST', headers, body })).text()
}
