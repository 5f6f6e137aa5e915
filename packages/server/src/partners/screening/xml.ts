/** Thrown when a document is incomplete, malformed, or uses unsupported XML. Nothing of it is used then. */
export class XmlRefused extends Error {
  override readonly name = 'XmlRefused'
}

export interface XmlHandler {
  /** Names are given without namespace prefix. The root's `depth` is 1. */
  open(name: string, attributes: ReadonlyMap<string, string>, depth: number): void
  /** A piece of text; long text is given in several pieces. */
  text(piece: string): void
  close(name: string, depth: number): void
}

export interface XmlScanner {
  write(chunk: string): void
  /** Ends the document. Throws unless the root was closed. */
  end(): void
}

const markupCharactersMax = 1_048_576
const depthMax = 64
const attributesMax = 64
const entityCharactersMax = 12

/**
 * A streaming XML parser with bounded memory. It supports elements, attributes, text, comments, CDATA and the five predefined entities. It refuses
 * document type declarations, and so all custom and external entities.
 */
export function createXmlScanner(handler: XmlHandler): XmlScanner {
  const stack: string[] = []
  let rest = ''
  let hasRoot = false

  const open = (markup: string): void => {
    const isEmpty = markup.endsWith('/')
    const { name, attributes } = readTag(isEmpty ? markup.slice(0, -1) : markup)
    if (stack.length === 0 && hasRoot) throw new XmlRefused('there is a second root')
    if (stack.length >= depthMax) throw new XmlRefused('elements nest too deep')
    hasRoot = true
    stack.push(name)
    handler.open(plain(name), attributes, stack.length)
    if (isEmpty) close(name)
  }
  const close = (name: string): void => {
    if (stack.at(-1) !== name) throw new XmlRefused('an end tag does not match')
    handler.close(plain(name), stack.length)
    stack.pop()
  }
  const text = (piece: string): void => {
    if (stack.length > 0) handler.text(piece)
    else if (piece.trim() !== '') throw new XmlRefused('there is text outside the root')
  }
  /** Parses the next complete piece and returns the position after it. */
  const take = (from: number): number => {
    if (rest[from] !== '<') {
      const until = endOfText(rest, from)
      if (until > from) text(expand(rest.slice(from, until)))
      return until
    }
    const markup = findMarkup(rest, from)
    if (markup === undefined) return from
    if (markup.until - from > markupCharactersMax) throw new XmlRefused('one tag is too long')
    if (markup.kind === 'text') text(markup.content)
    if (markup.kind === 'open') open(markup.content)
    if (markup.kind === 'close') close(markup.content.trimEnd())
    return markup.until
  }
  return {
    write(chunk) {
      rest += chunk
      let at = 0
      while (at < rest.length) {
        const until = take(at)
        if (until === at) break
        at = until
      }
      rest = rest.slice(at)
      if (rest.length > markupCharactersMax) throw new XmlRefused('one tag is too long')
    },
    end() {
      if (rest.trim() !== '' || stack.length > 0 || !hasRoot) throw new XmlRefused('the document is truncated')
    },
  }
}

interface Markup {
  readonly kind: 'open' | 'close' | 'text' | 'nothing'
  readonly content: string
  readonly until: number
}

const wrapped = [
  ['<!--', '-->', 'nothing'],
  ['<![CDATA[', ']]>', 'text'],
  ['<?', '?>', 'nothing'],
] as const

/** The markup at this position; undefined while it is incomplete. */
function findMarkup(text: string, from: number): Markup | undefined {
  const head = text.slice(from, from + 9)
  for (const [start, end, kind] of wrapped) {
    if (head.startsWith(start)) {
      const at = text.indexOf(end, from + start.length)
      return at < 0 ? undefined : { kind, content: text.slice(from + start.length, at), until: at + end.length }
    }
    if (start.startsWith(head)) return undefined
  }
  if (head.startsWith('<!')) throw new XmlRefused('document type declarations are not supported')
  const at = endOfTag(text, from + 1)
  if (at === undefined) return undefined
  if (head[1] === '/') return { kind: 'close', content: text.slice(from + 2, at), until: at + 1 }
  return { kind: 'open', content: text.slice(from + 1, at), until: at + 1 }
}

/** Position of a tag's `>`, ignoring quoted values. */
function endOfTag(text: string, from: number): number | undefined {
  let at = from
  for (;;) {
    const close = text.indexOf('>', at)
    if (close < 0) return undefined
    const quote = /["']/.exec(text.slice(at, close))
    if (quote === null) return close
    const quoteAt = at + quote.index
    const quoteEnd = text.indexOf(quote[0], quoteAt + 1)
    if (quoteEnd < 0) return undefined
    at = quoteEnd + 1
  }
}

/** End of the text that can be passed on; an incomplete entity waits for its rest. */
function endOfText(text: string, from: number): number {
  const markup = text.indexOf('<', from)
  if (markup >= 0) return markup
  const entity = text.lastIndexOf('&')
  const isCut = entity >= from && !text.includes(';', entity) && text.length - entity < entityCharactersMax
  return isCut ? entity : text.length
}

const name = /^[A-Za-z_][\w.:-]{0,127}/
const attribute = /^\s+([A-Za-z_][\w.:-]{0,127})\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/

function readTag(markup: string): { readonly name: string; readonly attributes: ReadonlyMap<string, string> } {
  const [found] = name.exec(markup) ?? []
  if (found === undefined) throw new XmlRefused('a tag has no name')
  const attributes = new Map<string, string>()
  let rest = markup.slice(found.length)
  while (rest.trim() !== '') {
    const match = attribute.exec(rest)
    if (match === null || attributes.size >= attributesMax) throw new XmlRefused('a tag is malformed')
    attributes.set(plain(match[1] ?? ''), expand(match[2] ?? match[3] ?? ''))
    rest = rest.slice(match[0].length)
  }
  return { name: found, attributes }
}

function plain(qualified: string): string {
  return qualified.slice(qualified.indexOf(':') + 1)
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function expand(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(/&([^;&]{0,10});?/g, (whole, inner: string) => {
    if (!whole.endsWith(';')) throw new XmlRefused('an entity is not closed')
    const code = /^#(?:x([0-9a-fA-F]{1,6})|(\d{1,7}))$/.exec(inner)
    const point = code === null ? undefined : Number.parseInt(code[1] ?? code[2] ?? '', code[1] === undefined ? 10 : 16)
    const character =
      point === undefined ? entities[inner] : point <= 0x10ffff ? String.fromCodePoint(point) : undefined
    if (character === undefined) throw new XmlRefused('an entity is unknown')
    return character
  })
}
