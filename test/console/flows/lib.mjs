// What the flows share. A flow is a program that drives Chromium with Playwright, and fails with an exception.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { writeFile } from 'node:fs/promises'

const packages = createRequire(process.env.NODE_MODULES + '/')
const { chromium } = packages('playwright-core')
const { AxeBuilder } = packages('@axe-core/playwright')

export { assert }

// BASE is where the console's API is, with a slash at the end.
export const base = process.env.BASE
const patience = 20_000

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'] })

// flow runs steps, and says in which one it failed.
export async function flow(steps) {
  let step = ''
  try {
    await steps((name) => {
      step = name
        console.log(`${(performance.now() / 1000).toFixed(1)} s: ${name}`)
    })
  } catch (e) {
    for (const c of browser.contexts()) for (const p of c.pages()) console.log(`--- ${p.url()}\n${await p.locator('body').innerText().catch(() => '')}\n---`)
    console.log(`failed at: ${step}`)
    throw e
  } finally {
    await browser.close()
  }
}

// open opens a page of the console that notes what the browser complains about.
export async function open(place = '', options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 820 }, reducedMotion: 'reduce', timezoneId: 'UTC', locale: 'en-US', ...options })
  context.setDefaultTimeout(patience)
  const page = await context.newPage()
  page.complaints = []
  page.on('console', (m) => {
    if (m.type() === 'error' && !/Failed to load resource|ERR_/.test(m.text())) page.complaints.push(m.text())
  })
  page.on('pageerror', (e) => page.complaints.push(e.message))
  await page.addInitScript(() => addEventListener('securitypolicyviolation', (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`)))
  await page.goto(new URL(`ui/${place}`, base).href)
  return page
}

// go opens a place of the console in the same page, and waits until it has what it shows.
export async function go(page, place) {
  await page.goto(new URL(`ui/#${place}`, base).href)
  await page.waitForFunction((path) => {
    const main = document.querySelector('.main') // which the page that signs in has not
    return !main || main.dataset.place === path
  }, place.replace(/\?.*/, ''))
  await settled(page)
}

export async function settled(page) {
  await page.locator('h1').first().waitFor()
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'))
}

// see waits for a text.
export const see = (page, text) => page.getByText(text).first().waitFor()

export const press = (page, name) => page.getByRole('button', { name, exact: true }).click()

// field is an input by its label, which a required one ends with a star.
export const field = (page, name) => page.getByLabel(new RegExp(`^${name}( \\*)?$`)).first()

export const title = (page) => page.locator('h1').first().innerText()

// call calls the API, with the token of the admin if there is one.
export async function call(method, path, body) {
  const headers = { 'Content-Type': 'application/json' }
  if (process.env.TOKEN) headers.Authorization = `Bearer ${process.env.TOKEN}`
  const res = await fetch(new URL(path.replace(/^\//, ''), process.env.DIRECT ?? base), { method, headers, body: body === undefined ? undefined : JSON.stringify(body) })
  const text = await res.text()
  return { status: res.status, body: text && /json/.test(res.headers.get('Content-Type') ?? '') ? JSON.parse(text) : text }
}

export async function made(path, body) {
  const a = await call('POST', path, body)
  assert.equal(a.status, 201, `${path}: ${JSON.stringify(a.body)}`)
  return a.body
}

// many is a document with services shop-NN, each with some routes path-N to upstreams up-NN, every third with a filter.
export function many(services, routes) {
  const digits = String(services - 1).length
  const at = (i) => String(i % services).padStart(digits, '0')
  const all = Array.from({ length: services }, (_, i) => i)
  const route = (i, r) => ({ route_name: `path-${r}`, route_prefix: `/${r}`, upstreams: [`up-${at(i + r)}`], filters: (i + r) % 3 === 0 ? ['limit'] : [] })
  return {
    version: 1,
    upstreams: all.map((i) => ({ upstream_name: `up-${at(i)}`, upstream_ip: `192.0.${2 + Math.floor(i / 250)}.${i % 250}`, upstream_port: 9090 })),
    filters: [{ filter_name: 'limit', filter_type: 'route_filter_bodylimit', filter_config: { bytes: 1024 } }],
    services: all.map((i) => ({ service_name: `shop-${at(i)}`, fqdn: `shop-${at(i)}.example.com`, routes: Array.from({ length: routes }, (_, r) => route(i, r)) })),
    proxies: [{ name: 'gw', services: all.map((i) => `shop-${at(i)}`) }],
  }
}

// put applies a document.
export async function put(document) {
  const a = await call('PUT', '/config', document)
  assert.equal(a.status, 200, JSON.stringify(a.body).slice(0, 500))
}

export async function revision() {
  return (await call('GET', '/status')).body.data.core_db_status[0].revision
}

// control asks the spec to do something, such as to stop the program.
export async function control(what) {
  const res = await fetch(new URL(what, process.env.CONTROL), { method: 'POST' })
  assert.equal(res.status, 200, await res.text())
}

// eventually repeats a question until its answer is the expected one.
export async function eventually(ask, want) {
  const end = Date.now() + patience
  let got
  do {
    got = await ask().catch((e) => e.message)
    if (got === want) return
    await new Promise((done) => setTimeout(done, 50))
  } while (Date.now() < end)
  assert.equal(got, want)
}

// faults are what axe finds serious or critical in a page as it is shown now.
export async function faults(page, where, rules) {
  const axe = new AxeBuilder({ page }).setLegacyMode() // there are no frames of other origins
  const { violations } = await (rules ? axe.withRules(rules) : axe).analyze()
  const serious = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical')
  return serious.map((v) => `${where}: ${v.id}: ${v.help}\n${v.nodes.slice(0, 4).map((n) => `  ${n.target} ${n.html.slice(0, 160)} ${n.any[0]?.message ?? ''}`).join('\n')}`)
}


// unreached lists what of a page can be used and that the Tab key does not reach.
export async function unreached(page) {
  const n = await page.evaluate(() => {
    const main = document.querySelector('main')
    const list = [...main.querySelectorAll('a[href], button, input, select, textarea, [tabindex="0"]')].filter((e) =>
      e.checkVisibility({ visibilityProperty: true }) && !e.disabled && e.tabIndex >= 0 && !e.closest('[inert], [aria-hidden=true]') &&
      !(e.type === 'radio' && !e.checked)) // the arrow keys lead there
    window.untouched = new Set(list)
    main.tabIndex = -1
    main.focus()
    return list.length
  })
  for (let i = 0; i < n + 20; i++) {
    if ((await page.evaluate(() => (window.untouched.delete(document.activeElement), window.untouched.size))) === 0) break
    await page.keyboard.press('Tab')
  }
  return page.evaluate(() => [...window.untouched].map((e) => e.outerHTML.slice(0, 150)))
}

// picture keeps what a page shows in both schemes, for the documentation, if that is wanted.
export async function picture(page, name) {
  if (!process.env.PICTURES) return
  for (const scheme of ['dark', 'light']) {
    await page.emulateMedia({ colorScheme: scheme })
    await page.waitForFunction((s) => document.documentElement.dataset.mantineColorScheme === s, scheme)
    await keep(page, `${name}-${scheme}`)
  }
}

async function keep(page, name) {
  const dir = process.env.PICTURES
  const png = await page.screenshot({ animations: 'disabled', caret: 'hide' })
  const blank = await browser.newPage()
  const webp = await blank.evaluate(async (data) => {
    const image = new Image()
    image.src = `data:image/png;base64,${data}`
    await image.decode()
    const canvas = document.createElement('canvas')
    canvas.width = image.width
    canvas.height = image.height
    canvas.getContext('2d').drawImage(image, 0, 0)
    return canvas.toDataURL('image/webp', 0.55).split(',')[1]
  }, png.toString('base64'))
  await blank.close()
  await writeFile(`${dir}/${name}.webp`, Buffer.from(webp, 'base64'))
}
