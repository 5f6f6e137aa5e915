import type { VaultFile } from '@purser/sdk'

/** More than this is not read into the page. */
export const previewBytesMax = 1_000_000

const bitmaps = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp'])

/**
 * Returns the kind of preview that a file gets. The browser gets only bitmaps under their own type: a picture that can hold a script, such as SVG,
 * and a page are shown as their source.
 */
export function previewKind({
  mimeType,
  size,
}: Pick<VaultFile, 'mimeType' | 'size'>): 'text' | 'image' | 'none' | 'too-large' {
  const type = mimeType.split(';')[0]?.trim().toLowerCase() ?? ''
  const isText =
    /^text\/|^application\/(?:[\w.-]+\+)?(?:json|xml)$|^application\/(?:javascript|yaml|x-ndjson)$|^image\/svg\+xml$/.test(
      type,
    )
  const kind = bitmaps.has(type) ? 'image' : isText ? 'text' : 'none'
  return kind !== 'none' && size > previewBytesMax ? 'too-large' : kind
}
