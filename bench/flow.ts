import { setTimeout as pause } from 'node:timers/promises'
import { fundNative, fundToken } from '@purser/devnet'
import { parseAddress } from '@purser/protocol'
import type { Child } from './children.ts'
import { createClosing } from './closing.ts'
import { type Ground, startGround } from './ground.ts'
import { getRequest, type LoadResponse, postRequest, runLoad } from './load.ts'
import { parseObject } from './parse.ts'
import { createPayers, signPayments } from './payments.ts'
import { type PurserSide, startHome, startPurser } from './sides.ts'

/**
 * Prints which files a reader opens to follow one verify, and one direct transfer until it is confirmed: those of which a function runs
 * for the request and does not run in a process without requests.
 */

/** Long enough for each recurring task that runs at least once a minute. */
const idleMs = 65_000
/** A function counts if each of these requests runs it: chance brings others into one of them. */
const repeats = 3

/** Left out: what every request or block has, and what is behind a port. */
const counted = /^server\/src\/(?:features|chain\/lanes)\//
const ofEveryRequest = /^server\/src\/features\/(?:organisations|requests|webhooks|plans|wallets\/deposits)\//

const closing = createClosing()
try {
  await main()
} finally {
  await closing.all()
}
process.exit(0)

async function main(): Promise<void> {
  const ground = await startGround()
  closing.add(() => ground.chain.stop())
  const home = await startHome()
  closing.add(() => home.stop())
  const side = await startPurser(ground, home)
  closing.add(() => side.child.stop())
  const verify = verifying(ground, side)
  const transfer = await transferring(ground, side)
  // What is done once in a process is no part of a later request.
  await verify()
  await transfer()
  await side.child.functionsRun()
  await pause(idleMs)
  const idle = await side.child.functionsRun()
  print('a verify', await filesOf(side.child, idle, verify))
  print('a direct transfer, until it is confirmed', await filesOf(side.child, idle, transfer))
}

function verifying({ payers, bill }: Ground, side: PurserSide): () => Promise<void> {
  const payments = signPayments(payers, bill, repeats + 1)
  return async () => {
    const payment = payments.pop()
    if (payment === undefined) throw new Error('no payment is left')
    const response = await requestOnce(side, side.verifyRequest(payment))
    if (!side.isVerified(response)) throw new Error(`the payment was refused: ${response.body}`)
  }
}

async function transferring({ chain }: Ground, side: PurserSide): Promise<() => Promise<void>> {
  const wanted = JSON.stringify({ chain: 'base', supportedTokens: ['USDC'] })
  const made = await requestOnce(side, postRequest('/wallet-infra/master-wallets', wanted, side.headers))
  const { id: fromWalletId, address } = parseObject(made.body)
  const account = parseAddress(String(address))
  if (account === undefined) throw new Error(`no wallet: ${made.body}`)
  await fundNative(chain, account, 10n ** 20n)
  await fundToken(chain, 'USDC', account, 10n ** 12n)
  return async () => {
    const [to] = createPayers(1)
    const body = {
      fromWalletId,
      fromToken: 'USDC',
      toChain: 'base',
      toToken: 'USDC',
      amount: '0.01',
      toAddress: to?.address,
    }
    const response = await requestOnce(side, postRequest('/wallet-infra/transfer', JSON.stringify(body), side.headers))
    const { id, status } = parseObject(response.body)
    if (status === 'confirmed') return
    const until = performance.now() + 30_000
    while (performance.now() < until) {
      const read = await requestOnce(side, getRequest(`/wallet-infra/transfers/${String(id)}`, side.headers))
      if (parseObject(read.body).status === 'confirmed') return
      await pause(100)
    }
    throw new Error(`the transfer was not confirmed: ${response.body}`)
  }
}

async function requestOnce({ port }: PurserSide, request: Buffer): Promise<LoadResponse> {
  const { responses } = await runLoad({ port, connections: 1, requests: [request], msMax: 60_000 })
  const [response] = responses
  if (response === undefined) throw new Error('no response came')
  return response
}

/** The functions of each file that run in each repeat of the request, and not without it. */
async function filesOf(
  child: Child,
  idle: ReadonlySet<string>,
  request: () => Promise<void>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  let run: ReadonlySet<string> | undefined
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    await child.functionsRun()
    await request()
    const now = await child.functionsRun()
    run = new Set([...(run ?? now)].filter((one) => now.has(one) && !idle.has(one)))
  }
  const functions = [...(run ?? [])].map((text) => text.split(' '))
  const own = functions.filter(([file = '']) => counted.test(file) && !ofEveryRequest.test(file))
  return new Map(
    [...Map.groupBy(own, ([file = '']) => file)].map(([file, of]) => [file, of.map(([, name = '-']) => name)]),
  )
}

function print(flow: string, files: ReadonlyMap<string, readonly string[]>): void {
  console.log(`\n${files.size} files are opened for ${flow}`)
  for (const [file, names] of [...files].toSorted(([a], [b]) => a.localeCompare(b)))
    console.log(`  ${file.slice('server/src/'.length)}: ${names.join(', ')}`)
}
