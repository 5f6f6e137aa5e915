import { createPurser } from '@purser/sdk'
import {
  documentContent,
  fetchKeys,
  itemProof,
  type Jwks,
  readSealProof,
  type SealProof,
  verifyItem,
  verifySeal,
} from '@purser/sdk/seal'
import type { Cast } from './demo-cast.ts'
import type { Research } from './demo-session.ts'
import { expectTrue, type Step } from './narrator.ts'

/** Everything that the agent needs for the offline check. */
interface ProofMaterial {
  readonly proof: unknown
  readonly keys: Jwks
  /** Content by the id of the item. */
  readonly contents: ReadonlyMap<string, Uint8Array>
}

interface Steps {
  readonly step: Step
  /** Ends everything that the demo started. */
  readonly stopAll: () => Promise<void>
}

/** The agent verifies the sealed vault offline, after every server has stopped. */
export async function runProofSteps(cast: Cast, research: Research, { step, stopAll }: Steps): Promise<void> {
  const luggage = await step("The agent fetches the contents, and the service's keys", () => pack(cast, research))
  await step('Provider, service, chains and database are stopped', () => stopAndCheck(cast, stopAll))
  const proof = await step('The agent checks the proof offline', () => checkProof(luggage, research))
  await step('And every content against the proof', () => checkContents(luggage, proof))
  await step('A changed name or bit is found', () => findChanges(luggage, proof))
}

async function pack({ dev }: Cast, { vaultId, token, proof }: Research) {
  const { vaults } = createPurser({ apiKey: token, baseUrl: dev.baseUrl })
  const { documents, files } = await vaults.get(vaultId)
  const contents = new Map<string, Uint8Array>()
  for (const { id, data } of documents) contents.set(id, documentContent(data ?? {}))
  for (const { id } of files) contents.set(id, await (await vaults.files.get(vaultId, id)).bytes())
  const keys = await fetchKeys(dev.baseUrl)
  expectTrue(contents.size === 2, `the vault holds ${contents.size} items`)
  const sizes = [...contents.values()].map(({ length }) => `${length} bytes`)
  return { value: { proof, keys, contents }, summary: `${sizes.join(' and ')}; /.well-known/jwks.json` }
}

async function stopAndCheck({ dev }: Cast, stopAll: () => Promise<void>) {
  await stopAll()
  const url = `${dev.baseUrl}/healthz`
  const isUp = await fetch(url).then(
    () => true,
    () => false,
  )
  expectTrue(!isUp, `${url} still responds`)
  return { value: undefined, summary: `GET ${url}: no response` }
}

async function checkProof({ proof, keys }: ProofMaterial, { vaultId, txHash }: Research) {
  const verdict = await verifySeal(proof, { keys })
  if (!verdict.ok) throw new Error(verdict.detail)
  expectTrue(verdict.statement.vaultId === vaultId, 'the statement is about another vault')
  const read = readSealProof(proof)
  if ('fault' in read) throw new Error('the proof cannot be read')
  const { payment } = read.value.manifest
  expectTrue(payment?.txHash === txHash, 'the manifest names another payment than the chain has')
  const { kid, statement } = verdict
  const summary = `${statement.treeSize} items, sealed at ${statement.sealedAt}, paid by ${txHash}, signed with ${kid}`
  return { value: read.value, summary }
}

async function checkContents({ keys, contents }: ProofMaterial, proof: SealProof) {
  for (const { id } of proof.manifest.items) {
    const verdict = await verifyItem(itemProof(proof, id), { keys, content: contents.get(id) ?? new Uint8Array() })
    if (!verdict.ok) throw new Error(`${id}: ${verdict.detail}`)
  }
  return { value: undefined, summary: proof.manifest.items.map(({ name, sha256 }) => `${name}: ${sha256}`).join('; ') }
}

async function findChanges({ keys, contents }: ProofMaterial, proof: SealProof) {
  const [item, ...others] = proof.manifest.items
  if (item === undefined) throw new Error('nothing was sealed')
  const renamed = { ...proof.manifest, items: [{ ...item, name: `${item.name} (final)` }, ...others] }
  const ofName = await verifySeal({ ...proof, manifest: renamed }, { keys })
  expectTrue(!ofName.ok && ofName.fault === 'merkle-root-differs', 'a changed name passes the check')

  const changed = new Uint8Array(contents.get(item.id) ?? [])
  changed[0] = (changed[0] ?? 0) ^ 1
  const ofBit = await verifyItem(itemProof(proof, item.id), { keys, content: changed })
  expectTrue(!ofBit.ok && ofBit.fault === 'content-differs', 'a changed content passes the check')
  return { value: undefined, summary: `${ofName.fault}; ${ofBit.fault}` }
}
