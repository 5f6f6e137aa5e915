import {
  fetchKeys,
  type ItemProof,
  itemProof,
  type Jwks,
  KeysUnavailableError,
  readItemProof,
  readSealProof,
  type SealedItem,
  verifyItem,
  verifySeal,
} from '@purser/sdk/seal'
import { type Asked, CannotDo, type Command, type Outcome, type Outside } from '../command.ts'
import { readBytes } from '../input-files.ts'
import { isRecord, readJson } from '../json.ts'
import { contentOf } from './verify-content.ts'
import { bad, good } from './verify-outcome.ts'

const proofBytesMax = 268_435_456
const keySetBytesMax = 1_048_576

/** `purser verify`: checks the proof of a sealed vault, or of one item in it, against keys that the person trusts. */
export const verify: Command = {
  name: 'verify',
  summary: 'Check the proof of a sealed vault, and with --item that of one item in it.',
  positionals: ['<proof.json>'],
  options: {
    keys: { value: '<jwks.json>', about: 'the keys that are trusted, as a JSON Web Key Set; nothing is fetched' },
    from: {
      value: '<url>',
      about: 'the service whose keys are trusted; they are fetched from its /.well-known/jwks.json',
    },
    item: { value: '<id>', about: 'the document or file (doc_…, fil_…) that must be in the vault' },
    file: { value: '<path>', about: 'what should be its content: the file, or the data of the document as JSON' },
  },
  notes: [
    'The proof is what GET /vaults/{id}/proof answers, or for one item alone GET /vaults/{id}/proof?item=….',
    'Keys that stand in the proof are never used. Give either --keys or --from.',
    'Exits with 0 when the proof holds, 1 when it does not, 2 when it could not be checked.',
  ],
  async run(asked, outside) {
    const { item: itemId, file } = asked.options
    const keys = await keysOf(asked, outside)
    const proof = readJson(await readBytes(asked.positionals[0] ?? '', proofBytesMax))
    const isOfOneItem = isRecord(proof) && Object.hasOwn(proof, 'item')
    if (file !== undefined && itemId === undefined && !isOfOneItem)
      throw new CannotDo('--file needs --item: whose content is it?')
    if (isOfOneItem) return ofOneItem(proof, keys, asked)
    return itemId === undefined ? ofVault(proof, keys, asked) : ofItemInVault(proof, keys, { ...asked, itemId })
  },
}

async function keysOf({ options: { keys, from } }: Asked, { fetch }: Outside): Promise<Jwks> {
  if (keys !== undefined && from !== undefined) throw new CannotDo('Give either --keys or --from, not both.')
  if (keys !== undefined) return keysIn(keys)
  if (from === undefined) throw new CannotDo('Whose signature counts? Give --keys <jwks.json> or --from <url>.')
  try {
    return await fetchKeys(from, { fetch })
  } catch (error) {
    const isExpected = error instanceof KeysUnavailableError || error instanceof TypeError
    throw isExpected ? new CannotDo(`--from ${from}: ${error.message}`, { cause: error }) : error
  }
}

async function keysIn(path: string): Promise<Jwks> {
  const set = readJson(await readBytes(path, keySetBytesMax))
  if (isRecord(set) && Array.isArray(set.keys)) return { keys: set.keys }
  throw new CannotDo(`${path} is not a JSON Web Key Set.`)
}

async function ofVault(proof: unknown, keys: Jwks, asked: Asked): Promise<Outcome> {
  const verdict = await verifySeal(proof, { keys })
  return verdict.ok ? good(verdict, asked) : bad(verdict, asked)
}

async function ofItemInVault(proof: unknown, keys: Jwks, asked: Asked & { readonly itemId: string }): Promise<Outcome> {
  const verdict = await verifySeal(proof, { keys })
  const read = readSealProof(proof)
  if (!verdict.ok || 'fault' in read) return bad(verdict, asked)
  const one = itemProof(read.value, asked.itemId)
  return one === undefined ? bad('item-unknown', asked) : ofItem(one, keys, asked)
}

async function ofOneItem(proof: unknown, keys: Jwks, asked: Asked): Promise<Outcome> {
  const read = readItemProof(proof)
  if ('fault' in read) return bad(await verifyItem(proof, { keys }), asked)
  const { item: itemId = read.value.item.id } = asked.options
  return itemId === read.value.item.id ? ofItem(read.value, keys, asked) : bad('item-unknown', asked)
}

async function ofItem(proof: ItemProof, keys: Jwks, asked: Asked): Promise<Outcome> {
  const { file } = asked.options
  const item: SealedItem = proof.item
  const content = file === undefined ? undefined : await contentOf(item, file)
  const verdict = await verifyItem(proof, { keys, content })
  return verdict.ok ? good(verdict, asked, item) : bad(verdict, asked, item)
}
