import type { SealedItem, Verdict } from '@purser/sdk/seal'
import { type Asked, CannotDo, type Outcome } from '../command.ts'

type Good = Extract<Verdict, { readonly ok: true }>

const itemUnknown = {
  ok: false,
  fault: 'item-unknown',
  at: '',
  detail: 'The proof has no item of that id.',
  claimedKid: undefined,
} as const

/** That everything asked about holds: what the statement says, and the item where one was asked about. */
export function good({ kid, statement }: Good, { options }: Asked, item?: SealedItem): Outcome {
  const contentChecked = options.file !== undefined
  const rows: readonly (readonly [string, string])[] = [
    ['vault', statement.vaultId],
    ['sealed', statement.sealedAt],
    ['items', String(statement.treeSize)],
    ['manifest', statement.manifestHash],
    ['Merkle root', statement.merkleRoot],
    ['signed with', `${kid}, a key of ${options.keys ?? options.from}`],
    ...(item === undefined ? [] : itemRows(item, options.file)),
  ]
  return {
    exitCode: 0,
    lines: ['The proof holds.', '', ...rows.map(([name, value]) => `  ${name.padEnd(11)}  ${value}`)],
    json: { ok: true, kid, statement, ...(item !== undefined && { item, contentChecked }) },
  }
}

/**
 * That something does not hold, by its fault and in a sentence. Throws a `CannotDo` where the keys are at fault, which says nothing
 * about the proof.
 */
export function bad(verdict: Verdict | 'item-unknown', { options }: Asked, item?: SealedItem): Outcome {
  const refusal = verdict === 'item-unknown' ? itemUnknown : verdict
  if (refusal.ok) throw new TypeError('a verdict that is good was to be told as a bad one')
  if (refusal.fault === 'keys-unusable') throw new CannotDo(`${options.keys ?? options.from}: ${refusal.detail}`)
  const { fault, at, detail, claimedKid } = refusal
  const isDocument = fault === 'content-differs' && item?.kind === 'document'
  const where = at === '' ? [] : [`It is so at ${at}.`]
  const claimed = claimedKid === undefined ? [] : [`The statement says that it was signed with ${claimedKid}.`]
  const hint = isDocument ? ['Of a document the file must hold the data alone: what the API calls `data`.'] : []
  return {
    exitCode: 1,
    lines: [`The proof does not hold: ${fault}`, detail, ...where, ...claimed, ...hint],
    json: { ok: false, fault, at, detail, claimedKid },
  }
}

function itemRows(item: SealedItem, file: string | undefined): readonly (readonly [string, string])[] {
  const checked = file === undefined ? 'not checked; give it with --file' : `${file} is what was sealed`
  return [
    ['item', item.id],
    ['name', item.name],
    ['size', `${item.size} bytes`],
    ['SHA-256', item.sha256],
    ['content', checked],
  ]
}
