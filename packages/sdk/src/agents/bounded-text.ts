/** The beginning of a body. */
export interface BodyText {
  /** Null if the body is not UTF-8 text. */
  readonly text: string | null
  /** Whether `text` is the whole body. */
  readonly isWhole: boolean
}

/**
 * Reads the beginning of a body, and cancels the rest. The text has at most `charactersMax` characters when it is
 * serialized as JSON. If the body breaks off, returns the part that was received.
 */
export async function readText(response: Response, charactersMax: number): Promise<BodyText> {
  const reader = response.body?.getReader()
  if (reader === undefined) return { text: '', isWhole: true }
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  try {
    while (text.length <= charactersMax) {
      const { value, done } = await nextOf(reader)
      text += value === undefined ? decoder.decode() : decoder.decode(value, { stream: true })
      if (done) return cut(text, charactersMax)
    }
    return { ...cut(text, charactersMax), isWhole: false }
  } catch (error) {
    if (error instanceof BrokenBodyError) return { ...cut(text, charactersMax), isWhole: false }
    return { text: null, isWhole: false }
  } finally {
    reader.cancel().catch(() => {})
  }
}

class BrokenBodyError extends Error {}

async function nextOf(reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read()
  } catch (cause) {
    throw new BrokenBodyError('the body broke off', { cause })
  }
}

/** Returns the beginning of a text, with at most `charactersMax` characters when it is serialized as JSON. */
function cut(text: string, charactersMax: number): { readonly text: string; readonly isWhole: boolean } {
  let kept = text
  for (let length = sizeOf(kept); length > charactersMax; length = sizeOf(kept)) {
    const share = Math.min(kept.length - 1, Math.floor((kept.length * charactersMax) / length))
    kept = kept.slice(0, share).replace(/[\ud800-\udbff]$/, '')
  }
  return { text: kept, isWhole: kept.length === text.length }
}

function sizeOf(text: string): number {
  return JSON.stringify(text).length - 2
}

/** Returns a text of a third party, cut to 200 characters. */
export function short(text: string | null | undefined): string | null {
  return text == null ? null : cut(text, 200).text
}
