package document

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// cache is a writer that reads an object once in a transaction: the rules of
// the store look at the same few owners and upstreams for every link.
type cache struct {
	store.Writer
	objects map[model.Key]model.Object
}

func newCache(w store.Writer) *cache {
	return &cache{Writer: w, objects: map[model.Key]model.Object{}}
}

// Get implements store.Reader.
func (c *cache) Get(key model.Key) (model.Object, error) {
	if obj := c.objects[key]; obj != nil {
		return obj, nil
	}
	obj, err := c.Writer.Get(key)
	if err == nil && key == obj.Key() {
		c.objects[key] = obj
	}
	return obj, err
}

// Insert implements store.Writer.
func (c *cache) Insert(obj model.Object) error {
	err := c.Writer.Insert(obj)
	if err == nil {
		c.objects[obj.Key()] = obj
	}
	return err
}

// Replace implements store.Writer.
func (c *cache) Replace(obj model.Object) error {
	delete(c.objects, obj.Key())
	return c.Writer.Replace(obj)
}

// Restore implements store.Writer.
func (c *cache) Restore(obj model.Object) error {
	delete(c.objects, obj.Key())
	return c.Writer.Restore(obj)
}

// Remove implements store.Writer.
func (c *cache) Remove(key model.Key) error {
	delete(c.objects, key)
	return c.Writer.Remove(key)
}
