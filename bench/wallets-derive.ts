import { HDNodeWallet } from 'ethers'
import { HDKey, hdKeyToAccount } from 'viem/accounts'
import { createSignatures } from '../packages/server/src/chain/index.ts'
import { createDeriveAddress } from '../packages/server/src/features/wallets/children/children.ts'
import type { Closing } from './closing.ts'
import { figure, median, sum, table } from './figures.ts'
import { type LoadResponse, postRequest, runLoad } from './load.ts'
import { parseObject } from './parse.ts'
import { startHome } from './sides.ts'
import { startVaultService, type VaultService } from './vault-service.ts'

export interface DerivePlan {
  readonly rounds: number
  /** Of each library alone, in one round. */
  readonly derivedMs: number
  /** Bulk requests of a round, of 1,000 children each. */
  readonly requests: number
}

export const fullDerive: DerivePlan = { rounds: 3, derivedMs: 2_000, requests: 20 }
export const quickDerive: DerivePlan = { rounds: 2, derivedMs: 700, requests: 6 }

const perRequest = 1_000
/** The service must derive and store at least this many times as many addresses a second as viem's derivation alone. */
const factorLeast = 10
const checked = 20
/** Two callers with a wallet each: while one's children are written the other's are derived. */
const callers = 2
const msMax = 60_000

/** A way to derive the n-th address below one account. */
interface Way {
  readonly name: string
  readonly addressAt: (index: number) => string
}

/**
 * Measures child addresses a second: derived, stored, watched and returned by the service through its bulk operation, beside the
 * derivation alone by viem, by ethers and by our own curve, in turn in one run. All ways must agree on the addresses. Returns how
 * many addresses were wrong, missing or duplicated, and whether the target was missed.
 */
export async function benchDerive(plan: DerivePlan, closing: Closing): Promise<number> {
  const home = await startHome()
  closing.add(() => home.stop())
  const service = await startVaultService(home, closing)
  const ways = await waysToDerive()
  const wrong = [disagreements(ways)]
  const stored: number[] = []
  const alone: number[][] = ways.map(() => [])
  await bulkRound(service, 2)
  for (let round = 0; round < plan.rounds; round += 1) {
    const bulk = await bulkRound(service, plan.requests)
    stored.push(bulk.perSecond)
    wrong.push(bulk.wrong)
    for (const [index, way] of ways.entries()) alone[index]?.push(perSecondOf(way, plan.derivedMs))
  }
  return report(plan, { ways, alone, stored, wrong: sum(wrong) })
}

function report(
  plan: DerivePlan,
  found: {
    readonly ways: readonly Way[]
    readonly alone: readonly (readonly number[])[]
    readonly stored: readonly number[]
    readonly wrong: number
  },
): number {
  const viem = median(found.alone[0] ?? [])
  const row = (name: string, values: readonly number[]) => [
    name,
    figure(median(values)),
    figure(Math.min(...values)),
    figure(Math.max(...values)),
    figure(median(values) / viem),
  ]
  console.log(
    `\nchild addresses: ${plan.requests} requests of ${perRequest} over HTTP by ${callers} callers, ${plan.rounds} rounds in turn with the libraries, each on one core\n`,
  )
  const rows = found.ways.map(({ name }, index) => row(name, found.alone[index] ?? []))
  console.log(
    table(
      ['', 'addresses/s', 'least', 'most', 'times viem'],
      [row('service, derived and stored', found.stored), ...rows],
    ),
  )
  const factor = median(found.stored) / viem
  const isMissed = factor < factorLeast
  console.log(
    `  target: at least ${factorLeast} times viem's derivation alone: ${isMissed ? 'MISSED' : 'met'}, ${figure(factor)}`,
  )
  return found.wrong + (isMissed ? 1 : 0)
}

/**
 * One account for every library: viem derives from the root, as its accounts do; ethers and ours derive from the
 * account's public node.
 */
async function waysToDerive(): Promise<Way[]> {
  const root = HDKey.fromMasterSeed(new Uint8Array(32).fill(7))
  const account = root.derive("m/44'/60'/0'/0")
  if (account.publicKey === null || account.chainCode === null) throw new Error('the account has no public node')
  const node = { publicKey: account.publicKey, chainCode: account.chainCode }
  const neutered = HDNodeWallet.fromExtendedKey(account.publicExtendedKey)
  const deriveAddress = createDeriveAddress(await createSignatures())
  return [
    { name: 'viem alone', addressAt: (addressIndex) => hdKeyToAccount(root, { addressIndex }).address },
    { name: 'ethers alone, from the public node', addressAt: (index) => neutered.deriveChild(index).address },
    { name: 'ours alone', addressAt: (index) => deriveAddress(node, index) ?? '' },
  ]
}

function disagreements(ways: readonly Way[]): number {
  const indices = Array.from({ length: checked }, (_, n) => n)
  return indices.filter((index) => new Set(ways.map(({ addressAt }) => addressAt(index))).size !== 1).length
}

function perSecondOf({ addressAt }: Way, forMs: number): number {
  const began = performance.now()
  let index = 0
  while (performance.now() - began < forMs) addressAt(++index)
  return (index / (performance.now() - began)) * 1_000
}

/** Sends bulk requests for wallets of their own, and counts what is not there, or there twice. */
async function bulkRound(service: VaultService, count: number): Promise<{ perSecond: number; wrong: number }> {
  const paths = await Promise.all(Array.from({ length: callers }, () => newMaster(service)))
  const body = JSON.stringify({ count: perRequest })
  const requests = Array.from({ length: count }, (_, n) =>
    postRequest(`${paths[n % callers]}/child-addresses`, body, service.headers),
  )
  const { responses, elapsedMs } = await runLoad({ port: service.port, connections: callers, requests, msMax })
  const addresses = new Set(responses.flatMap(addressesIn))
  return { perSecond: (addresses.size / elapsedMs) * 1_000, wrong: count * perRequest - addresses.size }
}

async function newMaster(service: VaultService): Promise<string> {
  const path = '/wallet-infra/master-wallets'
  const body = JSON.stringify({ chain: 'base', supportedTokens: ['USDC'] })
  const requests = [postRequest(path, body, service.headers)]
  const { responses } = await runLoad({ port: service.port, connections: 1, requests, msMax })
  const { id } = parseObject(responses[0]?.body ?? '{}')
  if (typeof id !== 'string') throw new Error(`no wallet: ${responses[0]?.status} ${responses[0]?.body}`)
  return `${path}/${id}`
}

function addressesIn({ status, body }: LoadResponse): string[] {
  return status === 201 ? (body.match(/"address":"0x[0-9a-fA-F]{40}"/g) ?? []) : []
}
