import { SaxesParser } from 'saxes'

/** Thrown when a document is incomplete, malformed, has a document type, or exceeds a limit. Nothing of it is used then. */
export class XmlRefused extends Error {
  override readonly name = 'XmlRefused'
}

export interface XmlHandler {
  /** Names are given without namespace prefix. The root's `depth` is 1. */
  open(name: string, attributes: ReadonlyMap<string, string>, depth: number): void
  /** A piece of text; an element may have several. */
  text(piece: string): void
  close(name: string, depth: number): void
}

export interface XmlScanner {
  write(chunk: string): void
  /** Ends the document. Throws unless it is complete. */
  end(): void
}

/** Most characters of one tag or text, with the comments before it: the parser keeps the whole of each. */
const pieceCharactersMax = 1_048_576
const writeCharactersMax = 65_536
const depthMax = 64
const attributesMax = 64

/**
 * A streaming XML parser with bounded memory. The parser refuses whatever is not well-formed (XML 1.0 and Namespaces in XML 1.0). Document type
 * declarations are refused too, and so all custom and external entities.
 */
export function createXmlScanner(handler: XmlHandler): XmlScanner {
  // With a seventh handler V8 keeps the parser's members in a dictionary, and parsing takes four times as long.
  const parser = new SaxesParser({ xmlns: true })
  let depth = 0
  /** Characters written since the parser gave a piece. */
  let pending = 0
  const refuse = (message: string, cause?: unknown): never => {
    throw new XmlRefused(message, { cause })
  }
  const given = (): void => {
    pending = 0
  }
  const text = (piece: string): void => {
    given()
    if (depth > 0) handler.text(piece)
  }
  parser.on('error', (error) => refuse(error.message, error))
  parser.on('doctype', () => refuse('document type declarations are not supported'))
  parser.on('text', text)
  parser.on('cdata', text)
  parser.on('opentag', ({ local, attributes }) => {
    given()
    depth += 1
    if (depth > depthMax) refuse('elements nest too deep')
    const named = Object.values(attributes)
    if (named.length > attributesMax) refuse('a tag has too many attributes')
    handler.open(local, new Map(named.map((one) => [one.local, one.value])), depth)
  })
  parser.on('closetag', ({ local }) => {
    given()
    handler.close(local, depth)
    depth -= 1
  })
  return {
    write(chunk) {
      for (let at = 0; at < chunk.length; at += writeCharactersMax) {
        const part = chunk.slice(at, at + writeCharactersMax)
        pending += part.length
        parser.write(part)
        if (pending > pieceCharactersMax + writeCharactersMax) refuse('one tag or text is too long')
      }
    },
    end() {
      parser.close()
    },
  }
}
