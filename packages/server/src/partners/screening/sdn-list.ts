import { addEntry, type ListReader } from './sanctions-list.ts'
import { createXmlScanner, type XmlHandler, XmlRefused } from './xml.ts'

const featureTypeBegin = 'Digital Currency Address'
const textCharactersMax = 4_096

/**
 * Parses OFAC's `sdn_advanced.xml`. Feature types whose text begins with "Digital Currency Address" mark addresses; the `VersionDetail` of every
 * feature of such a type is an address. All assets are read, since a key has one address on all EVM chains.
 */
export function sdnList(): ListReader {
  const addresses = new Set<string>()
  const addressTypes = new Set<string>()
  const date: Record<string, string> = {}
  const path: string[] = []
  let malformed = 0
  /** The element being read, with the id of a feature type. */
  let reading: { readonly name: string; readonly id: string; text: string } | undefined
  let featureDepth: number | undefined

  const wanted = (name: string): boolean =>
    name === 'FeatureType' ||
    (name === 'VersionDetail' && featureDepth !== undefined) ||
    (path.at(-2) === 'DateOfIssue' && path.length === 3)
  const done = ({ name, id, text }: NonNullable<typeof reading>): void => {
    const said = text.trim()
    if (name === 'FeatureType') {
      if (said.startsWith(featureTypeBegin)) addressTypes.add(id)
    } else if (name === 'VersionDetail') {
      if (!addEntry(addresses, said)) malformed += 1
    } else date[name] = said
  }
  const handler: XmlHandler = {
    open(name, attributes, depth) {
      if (depth === 1 && name !== 'Sanctions') throw new XmlRefused('the root element is not that of sdn_advanced.xml')
      path.push(name)
      if (name === 'Feature' && featureDepth === undefined && addressTypes.has(attributes.get('FeatureTypeID') ?? ''))
        featureDepth = depth
      if (wanted(name)) reading = { name, id: attributes.get('ID') ?? '', text: '' }
    },
    text(piece) {
      if (reading === undefined) return
      reading.text += piece
      if (reading.text.length > textCharactersMax) throw new XmlRefused('a text of the list is too long')
    },
    close(name, depth) {
      path.pop()
      if (reading?.name === name) {
        done(reading)
        reading = undefined
      }
      if (depth === featureDepth) featureDepth = undefined
    },
  }
  const scanner = createXmlScanner(handler)
  return {
    write: (chunk) => scanner.write(chunk),
    end() {
      scanner.end()
      return { format: 'sdn-advanced-xml', listDate: dayOf(date), addresses, malformed }
    },
  }
}

function dayOf({ Year: year = '', Month: month = '', Day: day = '' }: Readonly<Record<string, string>>): string {
  if (!/^\d{4}$/.test(year) || !/^\d{1,2}$/.test(month) || !/^\d{1,2}$/.test(day))
    throw new XmlRefused('the list has no issue date')
  return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
}
