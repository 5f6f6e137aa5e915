import type { Closing } from './closing.ts'
import { figure, median, sum, table } from './figures.ts'
import { getRequest, type LoadResponse, postRequest, runLoad } from './load.ts'
import { measure, type Run } from './measure.ts'
import { isRecord, parseObject } from './parse.ts'
import { startHome } from './sides.ts'
import { createVaultRequest, makeVaults, startVaultService, type VaultService } from './vault-service.ts'

export interface WritesPlan {
  readonly rounds: number
  readonly msMax: number
  readonly warmUpMs: number
  /** Over which the documents of the first load are spread. */
  readonly vaults: number
}

export const fullWrites: WritesPlan = { rounds: 3, msMax: 6_000, warmUpMs: 2_000, vaults: 256 }
export const quickWrites: WritesPlan = { rounds: 2, msMax: 1_000, warmUpMs: 500, vaults: 64 }

const connections = 32
/** More than any round can use up, and no more than one vault may hold. */
const requestsMax = 90_000
const documentBytes = 1_024

/** One kind of write: what is sent, and what each response must be. */
interface Write {
  readonly name: string
  /** Requests for one round, and the check after it: how many of the acknowledged writes are not there, or are there unacknowledged. */
  prepare(): Promise<{ readonly requests: readonly Buffer[]; amiss(acknowledged: number): Promise<number> }>
  isRight(response: LoadResponse): boolean
}

type WriteRun = Run & { readonly amiss: number }

/**
 * Measures how many 1 KB documents and how many vaults our service commits per second. There is no comparable
 * service. Acknowledged writes are then counted in the vaults. Returns how many responses or documents were wrong.
 */
export async function benchVaultWrites(plan: WritesPlan, closing: Closing): Promise<number> {
  const home = await startHome()
  closing.add(() => home.stop())
  const service = await startVaultService(home, closing)
  const writes = [
    documentsInto(service, plan.vaults, `documents, ${plan.vaults} vaults`),
    documentsInto(service, 1, 'documents, one vault'),
    creations(service),
  ]
  for (const write of writes) await run(service, write, plan.warmUpMs)
  const runs: WriteRun[][] = writes.map(() => [])
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const [index, write] of writes.entries()) runs[index]?.push(await run(service, write, plan.msMax))
  }
  console.log(
    `\nvault writes: documents of ${documentBytes} bytes, ${connections} connections, ${plan.rounds} rounds, medians\n`,
  )
  const head = ['', 'writes/s', 'p50 ms', 'p99 ms', 'service CPU ms', 'PostgreSQL', 'other cores']
  const rows = writes.map(({ name }, index) => [name, ...cellsOf(runs[index] ?? [])])
  console.log(table([...head, 'answered', 'wrong', 'amiss'], rows))
  for (const fault of runs.flat().flatMap((one) => one.fault ?? [])) console.log(`  WRONG: ${fault}`)
  return sum(runs.flat().map(({ wrong, amiss }) => wrong + amiss))
}

async function run(service: VaultService, write: Write, msMax: number): Promise<WriteRun> {
  const { requests, amiss } = await write.prepare()
  const { port, watched } = service
  const measured = await measure({ port, connections, requests, msMax, watched, isRight: write.isRight })
  return { ...measured, amiss: await amiss(measured.answered - measured.wrong) }
}

function cellsOf(runs: readonly WriteRun[]): string[] {
  const mid = (read: (run: WriteRun) => number) => figure(median(runs.map(read)))
  const cpu = (name: string) => mid((run) => run.cpuMs.get(name) ?? Number.NaN)
  return [
    mid((run) => run.perSecond),
    mid((run) => run.p50Ms),
    mid((run) => run.p99Ms),
    cpu('service'),
    cpu('PostgreSQL'),
    mid((run) => run.coresElsewhere),
    ...(['answered', 'wrong', 'amiss'] as const).map((name) => String(sum(runs.map((run) => run[name])))),
  ]
}

/** Documents that go round the vaults, which are new in each round; each holds exactly so many bytes as canonical JSON. */
function documentsInto(service: VaultService, vaults: number, name: string): Write {
  const data = { text: 'x'.repeat(documentBytes - JSON.stringify({ text: '' }).length) }
  const body = JSON.stringify({ name: 'report', data })
  return {
    name,
    async prepare() {
      const vaultIds = await makeVaults(service, vaults)
      const some = vaultIds.map((id) => postRequest(`/vaults/${id}/documents`, body, service.headers))
      return {
        requests: repeated(some),
        amiss: async (acknowledged) => Math.abs(acknowledged - (await countDocuments(service, vaultIds))),
      }
    },
    isRight({ status, body }) {
      const { id, size } = parseObject(body)
      return status === 201 && typeof id === 'string' && size === documentBytes
    },
  }
}

function creations(service: VaultService): Write {
  return {
    name: 'vault creations',
    async prepare() {
      const before = await countVaults(service)
      return {
        requests: repeated([createVaultRequest(service)]),
        amiss: async (acknowledged) => Math.abs(acknowledged - ((await countVaults(service)) - before)),
      }
    },
    isRight: ({ status, body }) => status === 201 && typeof parseObject(body).id === 'string',
  }
}

function repeated(some: readonly Buffer[]): readonly Buffer[] {
  return Array.from({ length: requestsMax }, (_, index) => some[index % some.length] ?? Buffer.alloc(0))
}

async function countDocuments(service: VaultService, vaultIds: readonly string[]): Promise<number> {
  const paths = vaultIds.map((id) => `/vaults/${id}`)
  return sum((await ask(service, paths)).map(({ documents }) => listed(documents).length))
}

/** As the plan counts them, which is what a customer is charged by. */
async function countVaults(service: VaultService): Promise<number> {
  const [quota] = await ask(service, ['/vaults/quota'])
  const active = quota?.active
  if (!isRecord(active) || typeof active.used !== 'number') throw new Error('the quota does not say how many vaults')
  return active.used
}

function listed(documents: unknown): readonly unknown[] {
  if (!Array.isArray(documents)) throw new Error('a vault does not list its documents')
  return documents
}

async function ask(service: VaultService, paths: readonly string[]): Promise<Record<string, unknown>[]> {
  const requests = paths.map((path) => getRequest(path, service.headers))
  const { responses } = await runLoad({ port: service.port, connections: 4, requests, msMax: 60_000 })
  return responses.map(({ body }) => parseObject(body))
}
