// Every page, in both schemes, with axe and with the Tab key; below a path prefix; with names and texts that attack.
import { assert, faults, base, call, eventually, flow, go, made, open, picture, press, revision, see, settled, title, unreached } from './lib.mjs'

const script = '<img src=x onerror="pwned=1"><script>pwned=1</script>'
const secret = '0123456789abcdef0123456789abcdef'

async function seed() {
  await made('/upstream', { upstream_name: 'blue', upstream_ip: '192.0.2.1', upstream_port: 80, tags: ['shop'] })
  await made('/upstream', { upstream_name: 'green', upstream_ip: '192.0.2.2', upstream_port: 80, tags: ['shop', 'canary'], upstream_hc_path: `/${encodeURIComponent(script)}` })
  await made('/service', { service_name: 'shop', fqdn: 'shop.example.com', tags: ['shop'] })
  await made('/service/shop/route', { route_name: 'cart', route_prefix: '/cart', route_config: { match: 'segment', methods: ['GET', 'POST'], timeouts: { request: '5s' } } })
  await made('/service/shop/route', { route_name: 'root', route_prefix: '/' })
  await made('/service/shop/route', { route_name: 'lost', route_prefix: '/lost' })
  await made('/service/shop/route/cart/upstream/blue')
  await made('/service/shop/route/cart/upstream/green')
  await made('/service/shop/route/root/upstream/blue')
  await made('/filter', { filter_name: 'limit', filter_type: 'route_filter_ratelimit', filter_config: { per: 'client', limit: '100/minute' } })
  await made('/filter', { filter_name: 'page', filter_type: 'route_filter_directresponse', filter_config: { status: 200, body: script } })
  await made('/service/shop/route/cart/filter/limit')
  await made('/secret', { secret_name: 'cookie', secret_value: secret })
  await made('/keyset', { keyset_name: 'partners' })
  await made('/keyset/partners/key', { key_name: 'mobile', key_description: script })
  await made('/globalconfig', { globalconfig_name: 'bounds', globalconfig_type: 'globalconfig_connections', config: { max_connections: 1000 } })
  await made('/proxy', { name: 'gw' })
  await made(`/proxy/gw/service/shop?message=${encodeURIComponent(script)}`)
  await call('PATCH', '/upstream/green', { upstream_weight: 20 })
}

const places = [
  '/', '/service', '/service/shop', '/service/shop/route/cart', '/route', '/upstream', '/upstream/green', '/filter', '/filter/page', '/proxy', '/proxy/gw', '/globalconfig', '/globalconfig/bounds',
  '/secret', '/secret/cookie', '/keyset', '/keyset/partners', '/keyset/partners/key/mobile', '/token', '/envoys', '/events', '/history', '/history/18', '/explain?proxy=gw&url=http%3A%2F%2Fshop.example.com%2Fcart', '/start', '/document', '/map', '/map?view=list', '/limits?proxy=gw&url=http%3A%2F%2Fshop.example.com%2Fcart',
  '/new/upstream', '/new/service', '/new/secret', '/new/filter', '/new/token', '/edit/upstream/green', '/edit/service/shop/route/cart', '/edit/filter/limit', '/edit/filter/page', '/nothing/at/all', '/upstream/none',
]
const pictures = {
  '/': 'overview', '/service/shop': 'service', '/route': 'routes', '/history': 'history', '/document': 'document', '/map': 'map', '/edit/service/shop/route/cart': 'form', '/secret/cookie': 'secret',
  '/upstream': 'upstreams', '/token': 'tokens', '/envoys': 'envoys', '/events': 'events', '/explain?proxy=gw&url=http%3A%2F%2Fshop.example.com%2Fcart': 'explain',
}

await flow(async (step) => {
  await seed()
  const page = await open()
  const answers = []
  page.on('response', (r) => {
    if (!r.url().endsWith('/events')) answers.push(r) // which does not end
  })
  page.on('dialog', (d) => page.complaints.push(`a dialog: ${d.message()}`))
  const found = []
  const check = async (where, name) => {
    found.push(...(await faults(page, where)))
    if (name) await picture(page, name)
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.waitForFunction(() => document.documentElement.dataset.mantineColorScheme === 'dark')
    found.push(...(await faults(page, `${where} in the dark`, ['color-contrast'])))
    await page.emulateMedia({ colorScheme: 'light' })
  }
  for (const place of places) {
    step(place)
    await go(page, place)
    await check(place, pictures[place])
    assert.ok((await title(page)).length > 0)
    assert.deepEqual(await unreached(page), [], place)
    assert.equal(await page.evaluate('typeof pwned'), 'undefined')
    assert.equal(await page.locator('main script, main img[src=x]').count(), 0)
    assert.ok(!(await page.content()).includes(secret))
  }
  step('texts that attack are shown as texts')
  await go(page, '/history/18')
  await see(page, script)

  step('dialogs and the palette')
  await go(page, '/upstream/blue')
  await press(page, 'Copy')
  await page.getByRole('dialog').waitFor()
  await check('copy')
  await press(page, 'Next')
  await see(page, 'blue-copy')
  await check('preview')
  await press(page, 'Cancel')
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Go to a page or an object' }).fill('green')
  await check('palette')
  await page.keyboard.press('Escape')
  assert.deepEqual(page.complaints, [])
  for (const r of answers) assert.ok(!(await r.text().catch(() => '')).includes(secret), r.url())
  await page.context().close()
  assert.deepEqual(found, [])

  step('a phone can read it')
  const phone = await open('', { viewport: { width: 390, height: 800 } })
  for (const place of ['/', '/service/shop', '/history', '/explain?proxy=gw&url=http%3A%2F%2Fshop.example.com%2Fcart']) {
    await go(phone, place)
    assert.ok((await phone.evaluate(() => document.documentElement.scrollWidth)) <= 390, place)
  }
  await phone.getByRole('button', { name: 'Navigation' }).click()
  await phone.getByRole('link', { name: 'Upstreams' }).click()
  await see(phone, 'green')
  await phone.context().close()
})
