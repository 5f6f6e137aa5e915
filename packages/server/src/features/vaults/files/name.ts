/** Most characters (Unicode code points) of a file's name. */
const nameLengthMax = 255

/** Why a text is not a valid file name; it follows "the file's name". */
export type NameFault = 'is missing' | 'is longer than 255 characters' | 'holds control characters'

/**
 * Returns the name under which a file is stored: the part after the last slash or backslash, normalized to NFC and otherwise
 * unchanged, in any script. Control characters are refused rather than removed. The name identifies nothing in the storage, so
 * that no name can reach another file.
 */
export function readFileName(given: string | undefined): { readonly name: string } | { readonly fault: NameFault } {
  if (given !== undefined && /\p{Cc}/u.test(given)) return { fault: 'holds control characters' }
  const base = given?.split(/[/\\]/).at(-1)?.toWellFormed().normalize('NFC').trim() ?? ''
  if (base === '' || base === '.' || base === '..') return { fault: 'is missing' }
  return [...base].length > nameLengthMax ? { fault: 'is longer than 255 characters' } : { name: base }
}

/** Returns the media type of a part without parameters; `application/octet-stream` if it is missing or invalid. */
export function readMimeType(given: string | undefined): string {
  const type = given?.split(';')[0]?.trim().toLowerCase() ?? ''
  const isType = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/.test(type)
  return isType ? type : 'application/octet-stream'
}

/**
 * Returns a `Content-Disposition` with which a browser saves the file under its name and never displays it: the name in UTF-8,
 * and in ASCII for older clients. Bidirectional control characters are left out, since `exe.fdp` written backwards reads as a
 * document. Source: RFC 6266 section 4.3 and appendix D, RFC 8187 section 3.2.
 */
export function attachmentOf(name: string): string {
  const shown = name.replaceAll(/\p{Bidi_Control}/gu, '')
  const ascii = shown.replaceAll(/[^\x20-\x7e]/gu, '_').replaceAll(/["\\%]/g, '_')
  const encoded = encodeURIComponent(shown).replaceAll(
    /['()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`
}
