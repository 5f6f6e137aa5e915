import {
  type Content,
  documentContent,
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
import { type Args, type Command, CommandError, type Io, type Outcome } from '../command.ts'
import { digestOf, readBytes } from '../input-files.ts'
import { isRecord, readJson } from '../json.ts'
import { bad, good } from './verify-outcome.ts'

const proofBytesMax = 268_435_456
const keySetBytesMax = 1_048_576
const documentBytesMax = 67_108_864

/** `purser verify`: checks the proof of a sealed vault, or of one item in it, against trusted keys. */
export const verify: Command = {
  name: 'verify',
  summary: 'Check the proof of a sealed vault, or of one item in it with --item.',
  positionals: ['<proof.json>'],
  options: {
    keys: { value: '<jwks.json>', about: 'trusted keys, as a JSON Web Key Set; nothing is fetched' },
    from: {
      value: '<url>',
      about: 'a trusted service; its keys are fetched from /.well-known/jwks.json',
    },
    item: { value: '<id>', about: 'the document or file (doc_…, fil_…) that must be in the vault' },
    file: { value: '<path>', about: 'the expected content: the file, or the data of the document as JSON' },
  },
  notes: [
    'The proof is the answer of GET /vaults/{id}/proof, or of GET /vaults/{id}/proof?item=… for one item.',
    'Keys inside the proof are never used. Give either --keys or --from.',
    'Exit codes: 0 the proof is valid, 1 it is invalid, 2 it could not be checked.',
  ],
  async run(args, io) {
    const { item: itemId, file } = args.options
    const keys = await keysOf(args, io)
    const proof = readJson(await readBytes(args.positionals[0] ?? '', proofBytesMax))
    const isOfOneItem = isRecord(proof) && Object.hasOwn(proof, 'item')
    if (file !== undefined && itemId === undefined && !isOfOneItem)
      throw new CommandError('--file needs --item, which names the item with that content.')
    if (isOfOneItem) return ofOneItem(proof, keys, args)
    return itemId === undefined ? ofVault(proof, keys, args) : ofItemInVault(proof, keys, { ...args, itemId })
  },
}

async function keysOf({ options: { keys, from } }: Args, { fetch }: Io): Promise<Jwks> {
  if (keys !== undefined && from !== undefined) throw new CommandError('Give either --keys or --from, not both.')
  if (keys !== undefined) return keysIn(keys)
  if (from === undefined) throw new CommandError('No trusted keys. Give --keys <jwks.json> or --from <url>.')
  try {
    return await fetchKeys(from, { fetch })
  } catch (error) {
    const isExpected = error instanceof KeysUnavailableError || error instanceof TypeError
    throw isExpected ? new CommandError(`--from ${from}: ${error.message}`, { cause: error }) : error
  }
}

async function keysIn(path: string): Promise<Jwks> {
  const set = readJson(await readBytes(path, keySetBytesMax))
  if (isRecord(set) && Array.isArray(set.keys)) return { keys: set.keys }
  throw new CommandError(`${path} is not a JSON Web Key Set.`)
}

async function ofVault(proof: unknown, keys: Jwks, args: Args): Promise<Outcome> {
  const verdict = await verifySeal(proof, { keys })
  return verdict.ok ? good(verdict, args) : bad(verdict, args)
}

async function ofItemInVault(proof: unknown, keys: Jwks, args: Args & { readonly itemId: string }): Promise<Outcome> {
  const verdict = await verifySeal(proof, { keys })
  const read = readSealProof(proof)
  if (!verdict.ok || 'fault' in read) return bad(verdict, args)
  const one = itemProof(read.value, args.itemId)
  return one === undefined ? bad('item-unknown', args) : ofItem(one, keys, args)
}

async function ofOneItem(proof: unknown, keys: Jwks, args: Args): Promise<Outcome> {
  const read = readItemProof(proof)
  if ('fault' in read) return bad(await verifyItem(proof, { keys }), args)
  const { item: itemId = read.value.item.id } = args.options
  return itemId === read.value.item.id ? ofItem(read.value, keys, args) : bad('item-unknown', args)
}

async function ofItem(proof: ItemProof, keys: Jwks, args: Args): Promise<Outcome> {
  const { file } = args.options
  const item: SealedItem = proof.item
  const content = file === undefined ? undefined : await contentOf(item, file)
  const verdict = await verifyItem(proof, { keys, content })
  return verdict.ok ? good(verdict, args, item) : bad(verdict, args, item)
}

/**
 * Reads the content of an item from a file. A vault file is hashed byte for byte, at any size; a document is parsed, so
 * its JSON formatting does not matter.
 */
async function contentOf({ kind }: SealedItem, path: string): Promise<Content> {
  if (kind === 'file') return digestOf(path)
  const bytes = await readBytes(path, documentBytesMax)
  const data = readJson(bytes)
  return isRecord(data) ? (canonical(data) ?? bytes) : bytes
}

/** `undefined` for data that no document can have, such as a number out of range. */
function canonical(data: Record<string, unknown>): Uint8Array | undefined {
  try {
    return documentContent(data)
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}
