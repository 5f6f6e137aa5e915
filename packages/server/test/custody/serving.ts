import { createInterface } from 'node:readline'
import { writeHeapSnapshot } from 'node:v8'
import { hdChildAddress } from '@purser/protocol'
import { createSignatures } from '../../src/chain/index.ts'
import { openCustody } from '../../src/custody/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import type { Tenant } from '../../src/platform/ctx.ts'
import { openDb } from '../../src/platform/db/db.ts'
import { createLog } from '../../src/platform/log.ts'
import { createOutbound } from '../../src/platform/outbound.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { steadyWitness } from '../steady-witness.ts'

/**
 * A process that uses every key in custody, some of them wrongly, logs the errors, and then waits to be inspected. Its
 * canary stays in memory, which proves that the inspection finds what is there.
 */
const [databaseUrl = '', file = '', organisation = '', snapshot = ''] = process.argv.slice(2)
const tenant: Tenant = { organisationId: organisation as Tenant['organisationId'], environment: 'live' }
const log = createLog({ level: 'debug' })
const db = openDb({ url: databaseUrl, connectionsMax: 4, log })
const signatures = await createSignatures()
const custody = await openCustody({
  witness: steadyWitness,
  db,
  clock: systemClock,
  random: systemRandom,
  log,
  outbound: createOutbound(),
  signatures,
  keys: { first: { file }, also: [] },
  createIfMissing: true,
  mppChallengeSeconds: 300,
})
const fields = {
  chainId: 84_532,
  nonce: 0n,
  maxPriorityFeePerGas: 1n,
  maxFeePerGas: 2n,
  gasLimit: 21_000n,
  to: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  value: 0n,
  data: '0x',
} as const
const domain = { name: 'USDC', version: '2', chainId: 84_532, verifyingContract: fields.to }

for (let index = 0; index < 40; index++) {
  const node = await custody.walletKeys.accountNode(tenant, 0)
  const address = hdChildAddress(node, index, signatures)
  const signer = custody.walletKeys.signer(tenant, { account: 0, index, address })
  await signer.signTransaction(fields)
  const nonce = `0x${'11'.repeat(32)}` as const
  const transfer = { from: address, to: fields.to, value: 1n, validAfter: 0n, validBefore: 9_999_999_999n, nonce }
  await signer.signTransferWithAuthorization(domain, transfer)
  await custody.settler.signTransaction(fields)
  await custody.seal.sign(Buffer.from('sealed'))
  const wrong = custody.walletKeys.signer(tenant, { account: 1, index, address })
  await wrong.signTransaction(fields).catch((err: unknown) => log.error({ err }, 'as it should be'))
}

const canary = systemRandom.bytes(32)
process.stdout.write(`canary ${Buffer.from(canary).toString('hex')}\n`)
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'snapshot') process.stdout.write(`written ${writeHeapSnapshot(snapshot)}\n`)
  if (line === 'end') break
}
process.stdout.write(`still ${canary.length}\n`)
await db.close()
