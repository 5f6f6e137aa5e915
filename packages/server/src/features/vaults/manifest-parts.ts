import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { buildManifest, canonicalJson, type SealedItem, type SealFacts, type SealManifest } from '@purser/protocol'

/** A manifest, its canonical JSON, and the SHA-256 of that in hex. */
export interface WrittenManifest {
  readonly manifest: SealManifest
  readonly text: string
  readonly hash: string
}

const itemsBegin = '"items":['

/**
 * Builds a manifest, and writes and hashes its canonical JSON, one part of its items at a time, with a turn of the event loop after each: that of
 * 100,000 items has 25 MB. The parts are in the order of the manifest. Throws a `RangeError` for facts that no verifier would accept, as `buildManifest`.
 */
export async function manifestOfParts(
  facts: Omit<SealFacts, 'items'>,
  parts: AsyncIterable<readonly SealedItem[]>,
): Promise<WrittenManifest> {
  const head = buildManifest({ ...facts, items: [] })
  const withoutItems = canonicalJson(head)
  // No member before it has text of its own: members are sorted by name.
  const at = withoutItems.indexOf(itemsBegin) + itemsBegin.length
  const hash = createHash('sha256')
  const texts: string[] = []
  const write = (text: string): void => {
    hash.update(text)
    texts.push(text)
  }
  write(withoutItems.slice(0, at))
  const items: SealedItem[] = []
  for await (const part of parts) {
    if (part.length === 0) continue
    const { items: checked } = buildManifest({ ...facts, items: part })
    if ((items.at(-1)?.id ?? '') >= (checked[0]?.id ?? ''))
      throw new RangeError('the parts of a manifest are not in order')
    write(`${items.length === 0 ? '' : ','}${canonicalJson(checked).slice(1, -1)}`)
    items.push(...checked)
    await nextTurn()
  }
  write(withoutItems.slice(at))
  return { manifest: { ...head, items }, text: texts.join(''), hash: hash.digest('hex') }
}
